"""``cron explain``: one sentence from the rows that the engine really leaves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.models import ScheduledTask, SchedulerInstance
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Simulation

from ..timezones import local_time
from .conftest import DELAY, Answer, Cron


@pytest.fixture
def hourly(sim: Simulation) -> Simulation:
    sim.initialize([("a", "0 * * * *", sim.job(), DELAY)])
    return sim


def asked(cron: Cron, sim: Simulation, at: str = "", name: str = "a") -> Answer:
    words = ("--at", at) if at else ()
    words = (*words, "--timezone", "UTC", "--format", "json")
    return cron("explain", name, *words, clock=sim.clock)


def cause(cron: Cron, sim: Simulation, at: str = "") -> str:
    return str(asked(cron, sim, at).data["cause"])


def test_what_waits_says_for_what(cron: Cron, hourly: Simulation) -> None:
    answer = cron("explain", "a", "--timezone", "UTC", clock=hourly.clock)
    assert answer.code == 0
    assert answer.lines[0] == (
        "It last ran at 2024-01-01 10:00:30 UTC and succeeded. "
        "The next run starts at 2024-01-01 11:00 UTC."
    )


def test_what_never_ran_says_so(cron: Cron, sim: Simulation) -> None:
    sim.initialize([("a", "0 11 * * *", sim.job(), DELAY)])
    assert asked(cron, sim).data["explanation"] == (
        "It has not run yet. The next run starts at 2024-01-01 11:00 UTC."
    )


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


def test_a_gap_ahead_is_told_in_the_future(cron: Cron, sim: Simulation) -> None:
    sim = Simulation(start="2024-03-30T10:00:30Z")
    entry = {"name": "a", "cron": "30 2 * * *", "timezone": "Europe/Berlin", "retry_delay": DELAY}
    sim.initialize([{**entry, "callback": "tests.management.callbacks.nothing"}])
    answer = asked(cron, sim, "2024-03-31T02:30").data
    assert answer["cause"] == "gap_ahead"
    assert answer["explanation"] == (
        "The local time 2024-03-31 02:30 will not exist: the clocks go forward over it. "
        "The next run starts at 2024-04-01 00:30 UTC."
    )


def test_what_ran_says_when_and_how_it_ended(cron: Cron, hourly: Simulation) -> None:
    hourly.advance_to("2024-01-01T11:30Z")
    answer = asked(cron, hourly, "2024-01-01T11:00Z").data
    assert answer["cause"] == "ran"
    assert answer["explanation"] == "It ran at 2024-01-01 11:00 UTC and succeeded."
    assert answer["run"]["outcome"] == "succeeded"


def test_a_failure_and_what_lies_before_its_retry(cron: Cron, sim: Simulation) -> None:
    job = sim.job(outcomes=["ok", "fail", "ok"])
    sim.initialize([("a", "0 * * * *", job, timedelta(minutes=20))])
    sim.advance_to("2024-01-01T11:10Z")
    assert cause(cron, sim) == "retry_pending"
    assert asked(cron, sim).data["run"]["outcome"] == "failed"
    told = cron("explain", "a", "--timezone", "UTC", clock=sim.clock).lines
    assert told[0] == "It failed, and waits for its retry at 2024-01-01 11:20 UTC."
    assert told[1] == asked(cron, sim).data["run"]["error"] != ""
    assert asked(cron, sim, "2024-01-01T11:00Z").data["explanation"].endswith("and failed.")
    sim.advance_to("2024-01-01T11:30Z")
    between = asked(cron, sim, "2024-01-01T11:10Z").data
    assert between["cause"] == "retry_pending"
    assert between["until"] == "2024-01-01T11:20:00Z"
    assert "as the retry of a failure" in asked(cron, sim, "2024-01-01T11:20Z").data["explanation"]


def test_a_pause_names_who_made_it_and_why(cron: Cron, hourly: Simulation) -> None:
    act = Act(author="ada", at=hourly.now, note="stocktaking")
    operator_actions.pause(["a"], act)
    hourly.advance_to("2024-01-01T12:30Z")
    assert asked(cron, hourly, "2024-01-01T12:00Z").data["paused_by"] == "ada"
    assert "because ada paused it" in asked(cron, hourly).data["explanation"]
    operator_actions.resume(["a"], Act(author="bob", at=hourly.now))
    hourly.advance_to("2024-01-01T12:40Z")
    then = asked(cron, hourly, "2024-01-01T12:00Z").data
    assert (then["cause"], then["note"]) == ("paused", "stocktaking")


def test_a_long_run_is_in_the_way(cron: Cron, sim: Simulation) -> None:
    job = sim.job(duration=timedelta(minutes=150))
    sim.initialize([("a", "0 * * * *", job, DELAY)])
    sim.advance_to("2024-01-01T12:30Z")
    answer = asked(cron, sim, "2024-01-01T12:00Z").data
    assert answer["cause"] == "coalesced"
    assert answer["run"]["started_at"] == "2024-01-01T10:00:30Z"
    SchedulerInstance.objects.update(heartbeat_at=sim.now)
    assert cause(cron, sim) == "running"
    SchedulerInstance.objects.update(heartbeat_at=sim.now - timedelta(minutes=1))
    gone = asked(cron, sim).data
    assert (gone["cause"], gone["until"]) == ("process_gone", "2024-01-01T12:29:00Z")


def test_missed_while_nobody_was_there(cron: Cron, hourly: Simulation) -> None:
    hourly.stop()
    hourly.jump_to("2024-01-01T15:30Z")
    answer = cron("explain", "a", "--timezone", "UTC", clock=hourly.clock)
    assert "because no scheduler is at work" in " ".join(answer.lines)
    assert cause(cron, hourly, "2024-01-01T13:00Z") == "no_leader"
    hourly.initialize([("a", "0 * * * *", hourly.job(), DELAY)])
    assert cause(cron, hourly, "2024-01-01T13:00Z") == "no_scheduler"
    assert cause(cron, hourly, "2024-01-01T15:00Z") == "ran_late"


def test_a_changed_schedule_owes_nothing(cron: Cron, hourly: Simulation) -> None:
    hourly.advance_to("2024-01-01T12:30Z")
    hourly.initialize([("a", "30 * * * *", hourly.job(), DELAY)])
    hourly.advance_to("2024-01-01T12:45Z")
    assert cause(cron, hourly, "2024-01-01T10:30Z") == "overridden"
    assert cause(cron, hourly, "2024-01-01T11:00Z") == "ran"


def test_local_times_are_those_of_the_task_in_gaps_too(cron: Cron, sim: Simulation) -> None:
    sim = Simulation(start="2024-03-30T10:00:30Z")
    entry = {"name": "a", "cron": "30 2 * * *", "timezone": "Europe/Berlin", "retry_delay": DELAY}
    sim.initialize([{**entry, "callback": "tests.management.callbacks.nothing"}])
    sim.advance_to("2024-03-31T06:00Z")
    answer = asked(cron, sim, "2024-03-31T02:30").data
    assert answer["cause"] == "gap"
    assert answer["explanation"] == (
        "The local time 2024-03-31 02:30 did not exist: the clocks went forward over it."
    )


def test_the_future_is_asked_about_too(cron: Cron, hourly: Simulation) -> None:
    assert cause(cron, hourly, "2024-01-02T11:00Z") == "will_run"
    assert cause(cron, hourly, "2024-01-02T11:17Z") == "not_due"


def test_a_broken_task_says_what_is_wrong(cron: Cron, hourly: Simulation) -> None:
    ScheduledTask.objects.update(broken_reason="no module named shop")
    answer = cron("explain", "a", "--timezone", "UTC", clock=hourly.clock)
    assert "no module named shop" in answer.out


def test_a_row_that_nobody_can_read_is_explained(cron: Cron, hourly: Simulation) -> None:
    ScheduledTask.objects.update(cron="* * *")
    assert cause(cron, hourly) == "broken"
    assert cause(cron, hourly, "2024-01-01T09:00Z") == "broken"


@pytest.mark.parametrize("at", ["yesterday", "2024-13-01", ""])
def test_what_is_no_instant_is_refused(cron: Cron, hourly: Simulation, at: str) -> None:
    answer = cron("explain", "a", "--at", at, clock=hourly.clock)
    assert answer.code == 2
    assert "is no instant" in answer.err


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


def test_an_unknown_name_is_refused(cron: Cron, hourly: Simulation) -> None:
    assert cron("explain", "b", clock=hourly.clock).code == 2


def test_a_removed_task_says_when_it_was_removed_and_shows_its_runs(
    cron: Cron, hourly: Simulation
) -> None:
    hourly.advance_to("2024-01-01T12:20Z")
    hourly.initialize([("b", "0 * * * *", hourly.job(), DELAY)])
    hourly.advance_to("2024-01-01T14:20Z")
    answer = cron("explain", "a", "--timezone", "UTC", clock=hourly.clock)
    assert answer.code == 0
    removed = "The task was removed at 2024-01-01 12:20 UTC; its history is kept."
    assert answer.lines[0] == removed
    assert [line.split()[0] for line in answer.lines[3:]] == ["succeeded"] * 3
    told = asked(cron, hourly, "2024-01-01T11:00Z").data
    assert (told["cause"], told["explanation"]) == ("removed", removed)
    assert told["removed_at"] == "2024-01-01T12:20:00Z"
    assert [run["scheduled_for"][11:16] for run in told["runs"]] == ["11:00", "10:00"]


@pytest.mark.parametrize("command", ["pause", "cancel"])
def test_commands_say_of_a_removed_task_when_it_was_removed(
    cron: Cron, hourly: Simulation, command: str
) -> None:
    hourly.initialize([])
    answer = cron(command, "a", clock=hourly.clock)
    assert answer.code == 1
    assert answer.err == (
        f"The task 'a' was removed at {local_time('2024-01-01 10:00:30')}. "
        "`python manage.py cron history a` shows its runs."
    )
