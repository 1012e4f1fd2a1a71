"""A short storm, of which ``tox -e chaos`` has the long form; its judges find what they are to."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from django_declarative_cron.models import ScheduledTask, SchedulerState, TaskRun

from . import judges
from .clocks import Clock
from .judges import MINUTE, Attempt, Life
from .plan import Plan

PLACES = {"postgresql": "postgres", "mysql": "mariadb", "sqlite": "sqlite"}
SHORT = {
    "mysql": {"MINUTES": "0.4", "SCHEDULERS": "2", "TASKS": "20", "GAP": "1.4"},
    "postgresql": {"MINUTES": "0.6", "SCHEDULERS": "3", "TASKS": "40", "GAP": "1.4"},
    "sqlite": {"MINUTES": "0.35", "SCHEDULERS": "2", "TASKS": "20", "GAP": "1.4"},
}
TIMEOUT = 300.0
ONCE = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="clocks are the same with every database"
)
LEASE = {"LEASE": "2", "LONGEST": "8"}


@pytest.mark.nightly
@pytest.mark.parametrize(
    "weather",
    ["all", pytest.param("clocks", marks=ONCE)],
)
def test_whatever_befalls_them_nothing_is_lost_and_nothing_runs_twice(
    weather: str, project_environment: dict[str, str], tmp_path: Path
) -> None:
    """P32, P35."""
    short = {
        f"DDC_CHAOS_{name}": value for name, value in (SHORT[connection.vendor] | LEASE).items()
    }
    measured = [name for name in os.environ if name.startswith("COVERAGE_")]
    kept = {key: value for key, value in project_environment.items() if key not in measured}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.processes.chaos"],
        env={
            **kept,
            **short,
            "DDC_CHAOS_WEATHER": weather,
            "DDC_TEST_DATABASE": PLACES[connection.vendor],
            "DATABASE_URL": "",
        },
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as storm:
        try:
            output, _ = storm.communicate(timeout=TIMEOUT)
        finally:
            storm.terminate()
    assert storm.returncode == 0, output


# --- the judges find what they are there to find, and nothing else ---

ALIVE = Life(1, 0, 100)
OTHER = Life(2, 0, 100)
KILLED = Life(1, 0, 10, killed=True)
PAUSED = Life(1, 0, 100, paused=((10, 40),))


def call(pid: int, start: float, end: float | None, **fields: Any) -> Attempt:
    given = {"task": "a", "occurrence": "10:00", "reason": "due", "succeeded": end is not None}
    return Attempt(pid=pid, start=start, end=end, **{**given, **fields})


@pytest.mark.parametrize(
    ("first", "second", "life", "seconds", "woken"),
    [
        (call(1, 1, 5), call(2, 5, 9), ALIVE, None, False),
        (call(1, 1, 5), call(2, 4, 9), ALIVE, 1, False),
        (call(1, 1, 9), call(2, 4, 5), ALIVE, 1, False),
        (call(1, 1, 5), call(2, 4, 9, task="b"), ALIVE, None, False),
        (call(1, 5, None), call(2, 11, 12), KILLED, None, False),
        (call(1, 5, None), call(2, 9, 12), KILLED, 1, False),
        (call(1, 5, 45), call(2, 30, 60), PAUSED, 15, True),
        (call(1, 41, 60), call(2, 50, 70), PAUSED, 10, False),
    ],
)
def test_calls_at_once_are_found(
    first: Attempt, second: Attempt, life: Life, seconds: float | None, woken: bool
) -> None:
    found = judges.overlaps([first, second], [life, OTHER])
    assert [(each.seconds, each.woken) for each in found] == (
        [] if seconds is None else [(seconds, woken)]
    )


@pytest.mark.parametrize(
    ("first", "second", "life", "twice"),
    [
        (call(1, 1, 5), call(2, 6, 9), ALIVE, True),
        (call(1, 1, 5, succeeded=False), call(2, 6, 9), ALIVE, False),
        (call(1, 1, 5), call(2, 6, 9, occurrence="10:01"), ALIVE, False),
        (call(1, 1, 5), call(2, 6, 9, reason="manual"), ALIVE, False),
        (call(1, 1, 5), call(2, 12, 13), KILLED, False),
        (call(1, 1, 5), call(2, 9, 13), KILLED, True),
        (call(1, 9, 11), call(2, 30, 35), PAUSED, False),
    ],
)
def test_a_second_success_is_found_unless_the_first_was_lost(
    first: Attempt, second: Attempt, life: Life, twice: bool
) -> None:
    assert bool(judges.repeated([first, second], [life, OTHER])) == twice


def test_what_was_written_down_is_read(tmp_path: Path) -> None:
    path = tmp_path / "evidence"
    path.write_text(
        '{"event": "start", "run": "x", "task": "a", "occurrence": "o", "reason": "due",'
        ' "pid": 7, "at": 1.5}\n'
        '{"event": "start", "run": "y", "task": "b", "occurrence": "o", "reason": "retry",'
        ' "pid": 8, "at": 1.25}\n'
        '{"event": "end", "run": "x", "succeeded": true, "pid": 7, "at": 2.5}\n'
    )
    assert judges.read(path) == [
        Attempt("b", "o", "retry", 8, 1.25),
        Attempt("a", "o", "due", 7, 1.5, 2.5, True),
    ]


# --- rows ----------------------------------------------------------------------

START = datetime(2024, 1, 1, 10, 0, tzinfo=UTC)


def minute(number: float) -> datetime:
    return START + timedelta(minutes=number)


@pytest.fixture
def state(db: None) -> SchedulerState:
    return SchedulerState.objects.create(deployment="default")


@pytest.fixture
def task(state: SchedulerState) -> ScheduledTask:
    return ScheduledTask.objects.create(
        scheduler=state,
        scheduler_identifier=uuid4(),
        name="a",
        cron="* * * * *",
        timezone="UTC",
        retry_delay=timedelta(seconds=1),
        registered_at=minute(0.5),
        discharged_at=minute(3),
    )


def store(task: ScheduledTask, at: float, **fields: Any) -> TaskRun:
    given = {
        "outcome": "succeeded",
        "reason": "due",
        "started_at": minute(at),
        "finished_at": minute(at + 0.5),
        "epoch": 1,
        "attempt": 1,
    }
    return TaskRun.objects.create(
        scheduler=task.scheduler,
        task_name=task.name,
        scheduled_for=minute(int(at)),
        **{**given, **fields},
    )


def missed(task: ScheduledTask, first: int, last: int) -> None:
    none = {"started_at": None, "finished_at": None}
    store(
        task, last, outcome="missed", scheduled_from=minute(first), count=last - first + 1, **none
    )


def test_a_whole_account_has_no_fault(task: ScheduledTask) -> None:
    store(task, 0.5)
    missed(task, 1, 2)
    store(task, 3)
    found = judges.audit(minute(3.9))
    assert (found.occurrences, found.runs) == (4, 2)
    assert not any([found.unaccounted, found.twice, found.at_once, found.still_running, found.late])


def test_every_fault_of_an_account_is_found(task: ScheduledTask) -> None:
    store(task, 0.5)
    store(task, 0.9, attempt=2, reason="retry")
    store(task, 3, outcome="running", finished_at=None)
    found = judges.audit(minute(3.9))
    assert [each[-14:-6] for each in found.unaccounted] == ["10:01:00", "10:02:00"]
    assert len(found.twice) == len(found.at_once) == len(found.still_running) == 1
    assert found.late == []


def test_late_starts_of_tasks_whose_runs_kept_dying_are_no_fault(task: ScheduledTask) -> None:
    store(task, 0.5)
    for attempt in (1, 2, 3):
        store(task, attempt, outcome="interrupted", attempt=attempt)
    late, twice = (
        {"axiom": axiom, "task": task.name, "at": minute(4).isoformat()} for axiom in ("L1", "S2")
    )
    early = {**late, "at": minute(2.9).isoformat()}
    assert judges.without_isolated([late, twice, early]) == [twice, early]


def test_minutes_that_come_again_are_accounted_for_a_second_time(task: ScheduledTask) -> None:
    """A clock that was set back by hours begins a registration of its own."""
    for each in (0.5, 1, 2, 3):
        store(task, each)
    # What failed ahead of the clock is tried again in whatever time it is by now.
    store(task, 9, outcome="failed", reason="retry", attempt=2, epoch=2)
    for each in (1, 3):
        store(task, each, epoch=2)
    found = judges.audit(minute(3.9), is_timed=False)
    assert [each[-14:-6] for each in found.unaccounted] == ["10:02:00"]
    assert (found.twice, found.at_once, found.occurrences) == ([], [], 7)


def test_a_clock_that_is_set_is_wrong_for_everybody(tmp_path: Path) -> None:
    ours, theirs = (Clock(str(tmp_path / "clock")) for _ in range(2))
    chance, right = random.Random(1), datetime.now(UTC)
    assert timedelta(0) <= theirs.now() - right < MINUTE
    steps = [ours.step(chance) for _ in range(50)]
    assert {step > 0 for step in steps} == {True, False}
    wrong = theirs.now() - datetime.now(UTC)
    assert abs(wrong - timedelta(seconds=sum(steps))) < MINUTE
    assert abs(wrong) <= timedelta(hours=12) + MINUTE


def test_a_task_that_nobody_considered_is_found(task: ScheduledTask) -> None:
    for each in (0.5, 1, 2, 3):
        store(task, each)
    assert len(judges.audit(minute(4.5)).late) == 1


def test_a_storm_is_told_to_other_processes() -> None:
    plan = Plan(minutes=0.5, tasks=3, evidence="x")
    assert Plan.from_environment(plan.environment()) == plan
    assert len(plan.registrations()) == 3
