"""``cron explain`` on twenty situations that the engine itself brought about."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron.models import ScheduledTask, SchedulerInstance
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Simulation

from .conftest import Cron

MINUTES = timedelta(minutes=1)
Story = Callable[[Simulation], None]


def start(sim: Simulation, cron: str = "0 * * * *", **keys: Any) -> None:
    """Declare the one task ``a``."""
    job = sim.job(
        outcomes=keys.pop("outcomes", ["ok"]), duration=keys.pop("duration", timedelta(0))
    )
    delay = keys.pop("retry_delay", 20 * MINUTES)
    entry = {"name": "a", "cron": cron, "timezone": "UTC", "callback": job, "retry_delay": delay}
    sim.initialize([{**entry, "dialect": "posix", "overlap_policy": "coalesce", **keys}])


def until(sim: Simulation, hour: str) -> None:
    sim.advance_to(f"2024-01-01T{hour}Z")


def act(sim: Simulation, note: str = "") -> Act:
    return Act(author="ada", at=sim.now, note=note)


def waiting(sim: Simulation) -> None:
    start(sim)


def ran(sim: Simulation) -> None:
    start(sim)
    until(sim, "11:30")


def failed_and_waits(sim: Simulation) -> None:
    start(sim, outcomes=["ok", "fail", "ok"])
    until(sim, "11:10")


def retried(sim: Simulation) -> None:
    start(sim, outcomes=["ok", "fail", "ok"])
    until(sim, "11:30")


def paused(sim: Simulation) -> None:
    start(sim)
    operator_actions.pause(["a"], act(sim, "stocktaking"))
    until(sim, "12:30")


def paused_for_a_while(sim: Simulation) -> None:
    start(sim)
    until(sim, "10:30")
    operator_actions.pause(["a"], act(sim), until=sim.now + 60 * MINUTES)
    until(sim, "11:10")


def was_paused(sim: Simulation) -> None:
    paused(sim)
    operator_actions.resume(["a"], Act(author="bob", at=sim.now))
    until(sim, "13:30")


def switched_off(sim: Simulation) -> None:
    start(sim, enabled=False)


def long_run(sim: Simulation) -> None:
    start(sim, duration=150 * MINUTES)
    until(sim, "12:30")
    SchedulerInstance.objects.update(heartbeat_at=sim.now)


def overlapped(sim: Simulation) -> None:
    start(sim, duration=90 * MINUTES, overlap_policy="skip")
    until(sim, "12:30")


def nobody_there(sim: Simulation) -> None:
    start(sim)
    sim.crash()
    sim.jump_to("2024-01-01T13:30Z")


def nobody_was_there(sim: Simulation) -> None:
    start(sim)
    sim.stop()
    sim.jump_to("2024-01-01T13:30Z")
    start(sim)
    until(sim, "13:40")


def changed(sim: Simulation) -> None:
    start(sim)
    until(sim, "11:30")
    start(sim, cron="15,30,45 * * * *")
    until(sim, "11:35")


def gap(sim: Simulation) -> None:
    start(sim, cron="30 2 * * *", timezone="Europe/Berlin")
    sim.jump_to("2024-03-30T12:00Z")
    sim.jump_to("2024-03-31T05:00Z")


def fold(sim: Simulation) -> None:
    start(sim, cron="30 2 * * *", timezone="Europe/Berlin")
    sim.jump_to("2024-10-26T12:00Z")
    sim.jump_to("2024-10-27T05:00Z")


def broken_import(sim: Simulation) -> None:
    start(sim)
    reason = "No module named 'shop.taks'; did you mean `shop.tasks`?"
    ScheduledTask.objects.update(broken_reason=reason)


def asked_for(sim: Simulation) -> None:
    start(sim)
    operator_actions.request_run(["a"], act(sim))


def ran_by_hand(sim: Simulation) -> None:
    asked_for(sim)
    until(sim, "10:20")


def interrupted(sim: Simulation) -> None:
    start(sim, duration=30 * MINUTES)
    until(sim, "10:10")
    sim.crash()
    sim.jump_to("2024-01-01T10:20Z")
    start(sim, duration=30 * MINUTES)
    until(sim, "10:25")
    SchedulerInstance.objects.filter(stopped_at=None).update(heartbeat_at=sim.now)


def leap_years(sim: Simulation) -> None:
    start(sim, cron="0 0 29 2 *")


_SHOWN = ("--timezone", "UTC", "--format", "json")

SITUATIONS: list[tuple[Story, str, str, str]] = [
    (waiting, "", "last_ran", "succeeded. The next run starts at 2024-01-01 11:00 UTC."),
    (ran, "2024-01-01T11:00Z", "ran", "It ran at 2024-01-01 11:00 UTC and succeeded."),
    (ran, "2024-01-01T12:00Z", "will_run", "It will run at 2024-01-01 12:00 UTC."),
    (failed_and_waits, "", "retry_pending", "2024-01-01 11:20 UTC"),
    (failed_and_waits, "2024-01-01T11:00Z", "ran", "and failed"),
    (retried, "2024-01-01T11:20Z", "ran", "as the retry of a failure"),
    (paused, "", "paused", "because ada paused it, until someone resumes it (stocktaking)"),
    (paused_for_a_while, "", "paused", "before 2024-01-01 11:30 UTC because ada paused it"),
    (was_paused, "2024-01-01T12:00Z", "paused", "ada paused it (stocktaking)"),
    (switched_off, "", "disabled", "its declaration says that it is not enabled"),
    (long_run, "", "running", "running since 2024-01-01 10:00:30 UTC"),
    (long_run, "2024-01-01T12:00Z", "coalesced", "10:00:30 UTC"),
    (overlapped, "2024-01-01T11:00Z", "overlap", "10:00:30 UTC"),
    (nobody_there, "", "no_leader", "no scheduler"),
    (nobody_was_there, "2024-01-01T12:00Z", "no_scheduler", "no scheduler"),
    (changed, "2024-01-01T11:15Z", "overridden", "2024-01-01 11:30 UTC"),
    (gap, "2024-03-31T02:30", "gap", "02:30"),
    (fold, "2024-10-27T01:30Z", "fold", "twice"),
    (broken_import, "", "broken", "did you mean `shop.tasks`?"),
    (asked_for, "", "requested", "as a person asked for it"),
    (ran_by_hand, "2024-01-01T10:00Z", "ran", "succeeded"),
    (interrupted, "", "running", "running since 2024-01-01 10:20"),
    (leap_years, "", "never_ran", "2024-02-29"),
]


@pytest.mark.parametrize(
    ("story", "at", "cause", "said"),
    SITUATIONS,
    ids=[f"{story.__name__}-{cause}" for story, _, cause, _ in SITUATIONS],
)
def test_a_situation_has_its_reason(
    story: Story, at: str, cause: str, said: str, cron: Cron, sim: Simulation
) -> None:
    story(sim)
    words = ("--at", at) if at else ()
    answer = cron("explain", "a", *words, *_SHOWN, clock=sim.clock).data
    assert (answer["cause"], said in answer["explanation"]) == (cause, True), answer["explanation"]
