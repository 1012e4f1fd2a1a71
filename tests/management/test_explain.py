"""What commands say of why a task does or does not run, and of how it is operated."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.core.declarations.declaration import offset_of
from django_declarative_cron.formatting import format_duration
from django_declarative_cron.models import ScheduledTask, SchedulerInstance
from django_declarative_cron.store import guard, operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Simulation

from ..timezones import local_time
from .conftest import DELAY, Answer, Cron

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


def gap_ahead(sim: Simulation) -> None:
    sim.jump_to("2024-03-30T10:00:30Z")
    start(sim, cron="30 2 * * *", timezone="Europe/Berlin")


def process_gone(sim: Simulation) -> None:
    long_run(sim)
    SchedulerInstance.objects.update(heartbeat_at=sim.now - MINUTES)


def damaged(sim: Simulation) -> None:
    start(sim)
    ScheduledTask.objects.update(cron="* * *")


_SHOWN = ("--timezone", "UTC", "--format", "json")

SITUATIONS: list[tuple[Story, str, str, str]] = [
    (waiting, "", "last_ran", "succeeded. The next run starts at 2024-01-01 11:00 UTC."),
    (ran, "2024-01-01T11:00Z", "ran", "It ran at 2024-01-01 11:00 UTC and succeeded."),
    (ran, "2024-01-01T12:00Z", "will_run", "It will run at 2024-01-01 12:00 UTC."),
    (ran, "2024-01-01T11:17Z", "not_due", "not due"),
    (failed_and_waits, "", "retry_pending", "2024-01-01 11:20 UTC"),
    (failed_and_waits, "2024-01-01T11:00Z", "ran", "and failed"),
    (retried, "2024-01-01T11:10Z", "retry_pending", "2024-01-01 11:20 UTC"),
    (retried, "2024-01-01T11:20Z", "ran", "as the retry of a failure"),
    (paused, "", "paused", "because ada paused it, until someone resumes it (stocktaking)"),
    (paused_for_a_while, "", "paused", "before 2024-01-01 11:30 UTC because ada paused it"),
    (was_paused, "2024-01-01T12:00Z", "paused", "ada paused it (stocktaking)"),
    (switched_off, "", "disabled", "its declaration says that it is not enabled"),
    (long_run, "", "running", "running since 2024-01-01 10:00:30 UTC"),
    (long_run, "2024-01-01T12:00Z", "coalesced", "10:00:30 UTC"),
    (overlapped, "2024-01-01T11:00Z", "overlap", "10:00:30 UTC"),
    (process_gone, "", "process_gone", "the process is gone since 2024-01-01 12:29 UTC"),
    (nobody_there, "", "no_leader", "no scheduler is at work"),
    (nobody_there, "2024-01-01T12:00Z", "no_leader", "no scheduler"),
    (nobody_was_there, "2024-01-01T12:00Z", "no_scheduler", "no scheduler"),
    (nobody_was_there, "2024-01-01T13:00Z", "ran_late", "13:30"),
    (changed, "2024-01-01T11:00Z", "ran", "succeeded"),
    (changed, "2024-01-01T11:15Z", "overridden", "2024-01-01 11:30 UTC"),
    (gap, "2024-03-31T02:30", "gap", "02:30 did not exist: the clocks went forward over it."),
    (gap_ahead, "2024-03-31T02:30", "gap_ahead", "will not exist: the clocks go forward over it."),
    (fold, "2024-10-27T01:30Z", "fold", "twice"),
    (broken_import, "", "broken", "did you mean `shop.tasks`?"),
    (damaged, "", "broken", "cron"),
    (damaged, "2024-01-01T09:00Z", "broken", "cron"),
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
    answer = asked(cron, sim, at).data
    assert (answer["cause"], said in answer["explanation"]) == (cause, True), answer["explanation"]


# --- what else an answer has ---


@pytest.fixture
def hourly(sim: Simulation) -> Simulation:
    sim.initialize([("a", "0 * * * *", sim.job(), DELAY)])
    return sim


def asked(cron: Cron, sim: Simulation, at: str = "") -> Answer:
    words = ("--at", at) if at else ()
    return cron("explain", "a", *words, *_SHOWN, clock=sim.clock)


def test_a_pending_skip_is_said_with_its_author(cron: Cron, hourly: Simulation) -> None:
    operator_actions.skip_next(["a"], Act(author="ada", at=hourly.now, note="stocktaking"))
    skipped = (
        "The occurrence of 2024-01-01 11:00 UTC does not run because ada skipped it (stocktaking)."
    )
    assert asked(cron, hourly).data["explanation"] == (
        "It last ran at 2024-01-01 10:00:30 UTC and succeeded. "
        f"The next run starts at 2024-01-01 12:00 UTC. {skipped}"
    )
    assert asked(cron, hourly, "2024-01-01T11:00Z").data["explanation"] == skipped


def test_programs_are_told_who_paused_it_and_why(cron: Cron, hourly: Simulation) -> None:
    operator_actions.pause(["a"], Act(author="ada", at=hourly.now, note="stocktaking"))
    hourly.advance_to("2024-01-01T12:30Z")
    operator_actions.resume(["a"], Act(author="bob", at=hourly.now))
    hourly.advance_to("2024-01-01T12:40Z")
    then = asked(cron, hourly, "2024-01-01T12:00Z").data
    assert (then["cause"], then["paused_by"], then["note"]) == ("paused", "ada", "stocktaking")


@pytest.mark.parametrize("at", ["yesterday", "2024-13-01", ""])
def test_what_is_no_instant_is_refused(cron: Cron, hourly: Simulation, at: str) -> None:
    answer = cron("explain", "a", "--at", at, clock=hourly.clock)
    assert answer.code == 2
    assert "is not a time" in answer.err


def test_instants_are_shown_in_the_zone_of_the_reader(cron: Cron, sim: Simulation) -> None:
    entry = {"name": "a", "cron": "0 7 * * *", "timezone": "Asia/Tokyo", "retry_delay": DELAY}
    sim.initialize([{**entry, "callback": sim.job()}])
    words = ("--timezone", "Europe/Berlin")
    assert cron("explain", "a", *words, clock=sim.clock).lines == [
        "It has not run yet. The next run starts at 2024-01-01 23:00 CET.",
        "a: 0 7 * * *  Asia/Tokyo",
    ]
    assert local_time("2024-01-01 22:00") in cron("explain", "a", clock=sim.clock).out
    assert "2024-01-01 23:00 CET" in cron("list", *words, clock=sim.clock).out
    assert local_time("2024-01-01 22:00") in cron("list", clock=sim.clock).out
    shown = cron("show", "a", *words, clock=sim.clock).out
    assert "2024-01-01 23:00 CET" in shown
    assert "JST" not in shown
    sim.advance_to("2024-01-01T22:00:10Z")
    assert cron("history", "a", *words, clock=sim.clock).lines[1].split()[1:3] == [
        "2024-01-01",
        "23:00",
    ]
    assert cron("history", *words, clock=sim.clock).err == "1 run; times in Europe/Berlin.\n"
    assert cron("explain", "a", "--timezone", "CEST", clock=sim.clock).code == 2


def test_a_removed_task_says_when_it_was_removed_and_shows_its_runs(
    cron: Cron, hourly: Simulation
) -> None:
    hourly.advance_to("2024-01-01T12:20Z")
    hourly.initialize([("b", "0 * * * *", hourly.job(), DELAY)])
    hourly.advance_to("2024-01-01T14:20Z")
    removed = "The task was removed at 2024-01-01 12:20 UTC; its history is kept."
    told = asked(cron, hourly, "2024-01-01T11:00Z").data
    assert (told["cause"], told["explanation"]) == ("removed", removed)
    assert told["removed_at"] == "2024-01-01T12:20:00Z"
    assert [run["scheduled_for"][11:16] for run in told["runs"]] == ["11:00", "10:00"]


ABSENT = "No scheduler is running (last heartbeat 2 h ago): start `python manage.py runscheduler`."


@pytest.mark.parametrize("words", [("list",), ("show", "a"), ("explain", "a")])
def test_that_nothing_starts_runs_comes_first(
    cron: Cron, sim: Simulation, words: tuple[str, ...]
) -> None:
    ran(sim)
    SchedulerInstance.objects.update(heartbeat_at=sim.now)
    piped = cron(*words, clock=sim.clock)
    assert "No scheduler" not in piped.out + piped.err
    until(sim, "13:30")
    SchedulerInstance.objects.update(heartbeat_at=sim.now - timedelta(hours=2))
    assert cron(*words, clock=sim.clock, is_terminal=True).out.startswith("No scheduler is running")
    silent = cron(*words, clock=sim.clock)
    assert silent.err.splitlines()[0] == ABSENT
    assert "No scheduler" not in silent.out
    data = cron(*words, "--format", "json", clock=sim.clock)
    assert "No scheduler" not in data.out + data.err


def test_a_scheduler_that_has_stopped_is_not_running(cron: Cron, sim: Simulation) -> None:
    ran(sim)
    SchedulerInstance.objects.update(stopped_at=sim.now, heartbeat_at=sim.now)
    assert "No scheduler is running (last heartbeat" in cron("list", clock=sim.clock).err
    SchedulerInstance.objects.update(heartbeat_at=guard.LONG_AGO)
    assert "No scheduler is running: start" in cron("explain", "a", clock=sim.clock).err
    SchedulerInstance.objects.all().delete()
    assert "running (no heartbeat so far): start" in cron("show", "a", clock=sim.clock).err


# --- tasks that are spread, excluded, skipped, too late, and pause themselves ---

HOUR = timedelta(hours=1)
HOLIDAYS = {"CALENDARS": {"holidays": lambda day: day == date(2024, 1, 2)}}


def _task(sim: Simulation, name: str, **said: Any) -> dict[str, Any]:
    task = {"name": name, "cron": "0 * * * *", "callback": sim.job(), "retry_delay": DELAY}
    return {**task, "overlap_policy": "coalesce", **said}


@pytest.fixture
def operated(sim: Simulation, settings: Any) -> Simulation:
    """Three days of tasks that are spread, excluded, skipped, too late, and pause themselves."""
    settings.DECLARATIVE_CRON = HOLIDAYS
    tasks = [
        _task(sim, "excluded", exclude_calendars="holidays"),
        _task(sim, "failing", callback=sim.job(["fail"]), pause_after_failures=2),
        _task(sim, "prompt", catch_up_window=0),
        _task(sim, "skipped"),
        _task(sim, "spread", spread=1800),
    ]
    sim.initialize(tasks)
    operator_actions.skip_next(["skipped"], Act(author="ada", at=sim.now, note="inventory"))
    sim.advance_to("2024-01-01T14:30:00Z", at_least_every=HOUR)
    sim.stop()
    sim.clock.advance(sim.now + 3 * HOUR)
    sim.initialize(tasks)
    sim.advance_to("2024-01-02T03:30:00Z", at_least_every=HOUR)
    sim[0].scheduler.beat()
    return sim


def test_a_history_with_all_of_it_is_judged_and_explained(cron: Cron, operated: Simulation) -> None:
    runs = {name: len(operated.starts(name)) for name in operated.task_names}
    assert runs == {"excluded": 12, "failing": 2, "prompt": 15, "skipped": 15, "spread": 16}
    answer = cron("verify", clock=operated.clock)
    assert answer.code == 0, answer.out
    assert answer.lines[0].startswith("0 violations in ")
    for name, at, said in EXPLAINED:
        words = ["explain", name] if at is None else ["explain", name, "--at", at]
        assert " ".join(cron(*words, clock=operated.clock).out.split()).startswith(said)
    following = operated.task("spread").next_run_at
    # The minute of a spread occurrence means it.
    asked = following.replace(second=0).isoformat()
    answer = cron("explain", "spread", "--at", asked, clock=operated.clock)
    assert answer.out.startswith("It will run at ")
    [*_, late] = [run for run in operated.runs("spread") if run.started_at is not None]
    late.delete()
    # The judge still sees a run that is missing.
    answer = cron("verify", clock=operated.clock)
    assert (answer.code, "spread" in answer.out) == (1, True)


EXPLAINED = [
    (
        "excluded",
        "2024-01-02T02:00Z",
        "The calendar “holidays” excludes the day of 2024-01-02 02:00 UTC; "
        "it runs next at 2024-01-03 00:00 UTC.",
    ),
    (
        "excluded",
        "2024-01-02T09:00Z",
        "The calendar “holidays” excludes the day of 2024-01-02 09:00 UTC; "
        "it runs next at 2024-01-03 00:00 UTC.",
    ),
    (
        "prompt",
        "2024-01-01T17:00Z",
        "The occurrence of 2024-01-01 17:00 UTC was missed, and too old to be caught up at "
        "2024-01-01 17:30 UTC.",
    ),
    (
        "skipped",
        "2024-01-01T11:00Z",
        "The occurrence of 2024-01-01 11:00 UTC does not run because ada skipped it (inventory).",
    ),
    (
        "failing",
        None,
        "It does not run because failures in a row paused it, until someone resumes it "
        "(SimulatedFailure: fail).",
    ),
    ("spread", "2024-01-02T09:59Z", "It is not due between"),
]


def test_p27_show_says_how_a_task_is_operated(cron: Cron, sim: Simulation, settings: Any) -> None:
    settings.DECLARATIVE_CRON = HOLIDAYS
    said = {
        "spread": 1800,
        "catch_up_window": "PT2H",
        "exclude_calendars": "holidays",
        "pause_after_failures": 5,
    }
    sim.initialize([_task(sim, "a", **said)])
    lines = [" ".join(line.split()) for line in cron("show", "a", clock=sim.clock).lines]
    assert "spread by less than 30 min" in lines
    assert "catch-up occurrences at most 2 h late" in lines
    assert "not on days of holidays" in lines
    assert "paused after 5 failures in a row" in lines
    # How late an occurrence may start if nothing is said is in test_golden.py.
    sim.initialize([_task(sim, "b", catch_up_window=0)])
    shown = cron("show", "b", clock=sim.clock).lines
    assert "catch-up never" in [" ".join(line.split()) for line in shown]


def test_next_says_what_moves_its_instants_and_leaves_some_out(
    cron: Cron, sim: Simulation, settings: Any
) -> None:
    settings.DECLARATIVE_CRON = HOLIDAYS
    moved = _task(sim, "b", spread=1800, exclude_calendars="holidays")
    settings.SCHEDULED_TASKS = [_task(sim, "a"), moved]
    sim.initialize(settings.SCHEDULED_TASKS)
    cron("skip", "a", clock=sim.clock)
    data = cron("next", "a", "-n", "1", "--format", "json", clock=sim.clock).data
    assert data["notes"] == ["Its run of 2024-01-01 11:00 UTC is skipped."]
    assert data["occurrences"][0]["at"] == "2024-01-01T12:00:00Z"
    data = cron("next", "b", "-n", "20", "--format", "json", clock=sim.clock).data
    offset = offset_of("b", timedelta(seconds=1800))
    assert data["notes"] == [
        f"Each is later by {format_duration(offset)}: it is spread.",
        "Days that its calendars exclude are left out.",
    ]
    found = [datetime.fromisoformat(each["at"]) for each in data["occurrences"]]
    hours = [(at - offset).strftime("%d %H") for at in found]
    assert hours[12:16] == ["01 22", "01 23", "03 00", "03 01"]
