"""``runscheduler``, called in this process: how it ends where something is wrong, what it prints.

What signals do to it is shown with processes, in ``tests/runtime``; ``test_golden.py`` has its
lines whole.
"""

from __future__ import annotations

import io
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, OperationalError

from django_declarative_cron import Scheduler, conf
from django_declarative_cron.core import events
from django_declarative_cron.exceptions import StopSchedulerError
from django_declarative_cron.management.cli import runscheduler_output
from django_declarative_cron.management.cli.runscheduler_output import RunLineFormatter, banner
from django_declarative_cron.management.commands import runscheduler
from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.signals import publish
from django_declarative_cron.store import database, operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Simulation

from ..timezones import local_time
from .conftest import DELAY, HERE, START, Answer, Screen

Run = Callable[..., Answer]
GONE = OperationalError("the server is gone")


class Asked:
    """In the place of what hears signals: it was asked to end at once, or never."""

    def __init__(self, at_first: Callable[[], None]) -> None:
        self.received: signal.Signals | None = None
        self.is_alive = True

    def install(self) -> None:
        """Leave the signals of the tests alone."""

    def wait(self, seconds: float) -> bool:
        return self.is_alive


class NoResort:
    """In the place of what ends a process that hangs."""

    def arm(self, delay: timedelta) -> None:
        """Do nothing."""


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Collect the codes with which the process would have been left at once."""
    codes: list[int] = []
    made: list[Scheduler] = []

    def leave(scheduler: Scheduler, code: int) -> None:
        codes.append(code)
        made.append(scheduler)

    monkeypatch.setattr(runscheduler, "_leave_at_once", leave)
    yield codes
    monkeypatch.undo()
    for scheduler in made:
        scheduler.stop()


@pytest.fixture
def run(transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Run:
    monkeypatch.setattr(runscheduler, "Shutdown", Asked)
    monkeypatch.setattr(runscheduler, "LastResort", NoResort)
    monkeypatch.setattr(runscheduler, "_keep_for_good", lambda: None)
    # In UTC: where the project's clocks change, the checks advise first.
    often = {"name": "t", "cron": "* * * * *", "timezone": "UTC"}
    settings.SCHEDULED_TASKS = [{**often, "callback": f"{HERE}.nothing", "retry_delay": DELAY}]

    def call(*words: str) -> Answer:
        out, err = Screen(), Screen()
        command = runscheduler.Command(stdout=out, stderr=err)
        try:
            call_command(command, *words)
        except CommandError as error:
            return Answer(error.returncode, out.getvalue(), err.getvalue() + str(error))
        return Answer(0, out.getvalue(), err.getvalue())

    return call


def _refuse(*_: object, **__: object) -> None:
    raise GONE


def test_once_runs_what_is_due_and_ends_with_0(run: Run) -> None:
    assert run("--once").code == 0
    assert [row.outcome for row in TaskRun.objects.all()] == ["succeeded"]
    assert SchedulerState.objects.get().leader is None


def test_p79_a_database_that_is_away_at_the_start_is_1_and_one_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runscheduler, "require_tables", _refuse)
    answer = run()
    assert (answer.code, answer.err) == (1, "The database does not answer.")


def test_a_database_that_refuses_the_tasks_is_1_and_says_which(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "insert", _refuse)
    answer = run()
    assert (answer.code, answer.err) == (1, "Failed to schedule task 't': the server is gone")
    assert not SchedulerInstance.objects.exists()


def test_who_is_asked_to_end_before_the_tasks_are_taken_ends_as_asked(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "insert", _refuse)
    monkeypatch.setattr(Asked, "received", signal.SIGTERM, raising=False)
    monkeypatch.setattr(Asked, "__init__", lambda self, at_first: None)
    assert run().code == 0


@pytest.mark.parametrize(
    ("option", "what"), [("--health-port", "probes"), ("--metrics-port", "metrics")]
)
def test_a_port_that_is_taken_is_1_and_nothing_was_started(
    run: Run, option: str, what: str
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        answer = run(option, str(port), option.replace("port", "host"), "127.0.0.1")
    assert answer.code == 1
    assert answer.err.startswith(f"No {what} at 127.0.0.1:{port}: ")
    assert not SchedulerInstance.objects.exists()
    assert not TaskRun.objects.exists()


@pytest.mark.parametrize("mistake", [("t", "61 * * * *", "os.getcwd", timedelta(0)), 5])
def test_a_mistake_in_the_settings_is_2_and_nothing_was_written(
    run: Run, settings: Any, mistake: object
) -> None:
    settings.SCHEDULED_TASKS.append(mistake)
    answer = run()
    assert answer.code == 2
    assert "declarative_cron.E0" in answer.err
    assert not SchedulerState.objects.exists()


@pytest.mark.parametrize(
    "words", [("--workers", "0"), ("--grace", "-1"), ("--workers", "many"), ("--nonsense",)]
)
def test_wrong_use_is_2(run: Run, words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as left:
        runscheduler.Command().run_from_argv(["manage.py", "runscheduler", *words])
    assert left.value.code == 2
    assert not SchedulerState.objects.exists()


@pytest.mark.parametrize("option", [{"LEASE": 5, "RENEW": 6}, {"WORKRS": 1}, {"GRACE": "soon"}])
def test_p39_options_that_contradict_each_other_start_nothing(
    run: Run, settings: Any, option: dict[str, Any]
) -> None:
    settings.DECLARATIVE_CRON = option
    answer = run()
    assert answer.code == 2
    assert "declarative_cron.E02" in answer.err
    assert not SchedulerState.objects.exists()


@pytest.mark.parametrize("words", [(), ("--once",)], ids=["for good", "once"])
def test_p29_a_stop_that_fails_never_ends_with_0(
    run: Run, left: list[int], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    made: list[Scheduler] = []

    def fails(self: Scheduler, *, grace: timedelta | None = None) -> bool:
        made.append(self)
        raise StopSchedulerError(GONE)

    with monkeypatch.context() as patched:
        patched.setattr(Scheduler, "stop", fails)
        answer = run(*words)
    for scheduler in made:
        scheduler.stop()
    assert [*left, answer.code][0] == 1
    assert "Failed to stop scheduler: the server is gone" in answer.err


def test_a_thread_that_has_ended_is_1(
    run: Run, left: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([False, True])
    monkeypatch.setattr(Asked, "wait", lambda self, seconds: next(looks))
    monkeypatch.setattr(Scheduler, "is_alive", False)
    answer = run()
    assert left[0] == 1
    assert "A thread that the scheduler needs has ended." in answer.err


# --- the lines before the first run ---


def said(two: Simulation) -> list[str]:
    assert two[0].scheduler is not None
    return list(banner(two[0].scheduler, conf.options(), database.alias(), None))


@pytest.fixture
def two(db: None) -> Simulation:
    """Two tasks, the first of them at eleven."""
    made = Simulation(start=START)
    job = made.job()
    made.initialize([("a", "0 * * * *", job, DELAY), ("b", "0 12 * * *", job, DELAY)])
    return made


def test_without_a_port_there_are_no_probes(two: Simulation) -> None:
    assert said(two)[4] == "  probes    none"


def test_what_is_paused_is_not_next(two: Simulation) -> None:
    operator_actions.pause(["a"], Act(author="ada", at=two.now))
    assert said(two)[2].endswith(f"the next at {local_time('2024-01-01 12:00')}")
    operator_actions.pause(["b"], Act(author="ada", at=two.now))
    assert said(two)[2] == "  tasks     2 tasks"


def test_no_schedule_is_worked_out_for_it(
    two: Simulation, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many tasks there are, it is one query that says which is next."""
    monkeypatch.setattr("django_declarative_cron.core.schedule.Schedule.next_after", pytest.fail)
    with django_assert_num_queries(1):
        assert f"the next at {local_time('2024-01-01 11:00')}" in said(two)[2]


def test_a_database_that_refuses_does_not_end_the_scheduler(
    two: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise DatabaseError("gone")

    rows = SimpleNamespace(using=lambda alias: rows, filter=lambda **_: rows, aggregate=refuse)
    monkeypatch.setattr(ScheduledTask, "objects", rows)
    assert said(two)[2] == "  tasks     2 tasks"


def test_tasks_of_other_deployments_are_not_told(two: Simulation) -> None:
    before = said(two)[2]
    theirs = ScheduledTask.objects.get(name="a")
    other = type(theirs.scheduler).objects.create(deployment="other")
    theirs.pk = None
    theirs.scheduler, theirs.next_run_at = other, datetime(2024, 1, 1, tzinfo=UTC) - timedelta(1)
    theirs.save()
    assert said(two)[2] == before


# --- the log has one short line for each run ---

DUE = datetime.fromisoformat("2030-01-31T06:00:00Z")


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler, logger = logging.StreamHandler(stream), logging.getLogger("django_declarative_cron")
    formatter = RunLineFormatter(ZoneInfo("Europe/Berlin"))
    handler.setFormatter(formatter)
    handler.addFilter(formatter.filter)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(level)


def _started(run: int = 1, late: float = 0.12, **values: Any) -> events.Event:
    at = DUE + timedelta(seconds=late)
    keys = {"at": at, "task_name": "report-daily", "scheduled_time": DUE, "actual_time": at}
    return events.TaskRunStarted(**keys, run=run, **values)


def _lines(log: io.StringIO) -> list[str]:
    return [line.split(maxsplit=2)[2] for line in log.getvalue().splitlines()]


def test_a_run_that_succeeds(log: io.StringIO) -> None:
    end = events.TaskRunCompleted(at=DUE, task_name="report-daily", duration=1.26, run=1)
    publish([_started(), end])
    assert _lines(log) == ["INFO    report-daily succeeded in 1.2 s (due 07:00:00, +120 ms)"]


def test_a_run_that_fails_and_its_retry(log: io.StringIO) -> None:
    keys: dict[str, Any] = {"at": DUE, "task_name": "report-daily", "error": "ValueError: no"}
    retry_at = DUE + timedelta(minutes=5)
    publish([_started(), events.TaskRunFailed(**keys, duration=65, run=1, next_retry_at=retry_at)])
    publish([events.TaskRetryStarted(at=DUE, task_name="report-daily", retry_count=1)])
    publish([_started(2, 300, attempt=2, is_retry=True, reason="retry")])
    publish([events.TaskRunFailed(**keys, duration=0.5, run=2, attempt=2)])
    assert _lines(log) == [
        "WARNING report-daily failed after 1 min 5 s: ValueError: no "
        "(due 07:00:00, +120 ms; retry at 07:05:00)",
        "WARNING report-daily failed after 500 ms: ValueError: no (due 07:00:00, attempt 2)",
    ]


def test_what_is_not_on_the_day_of_the_end_has_its_date(log: io.StringIO) -> None:
    at = DUE + timedelta(hours=16, minutes=59)
    retry_at = at + timedelta(minutes=1)
    failed = events.TaskRunFailed(
        at=at, task_name="a", error="E", duration=0.5, run=1, next_retry_at=retry_at
    )
    publish([_started(), failed])
    completed = events.TaskRunCompleted(
        at=DUE + timedelta(days=1), task_name="a", duration=86400, run=2
    )
    publish([_started(2), completed])
    assert _lines(log) == [
        "WARNING a failed after 500 ms: E (due 07:00:00, +120 ms; retry at 2030-02-01 00:00:00)",
        "INFO    a succeeded in 1 d (due 2030-01-31 07:00:00, +120 ms)",
    ]


def test_an_end_without_a_start_and_other_events(log: io.StringIO) -> None:
    publish([events.TaskRunCompleted(at=DUE, task_name="a", duration=2, run=7)])
    publish([events.TaskRetryPreempted(at=DUE, task_name="a", reason="due")])
    assert _lines(log) == [
        "INFO    a succeeded in 2 s",
        "INFO    TaskRetryPreempted at=2030-01-31T06:00:00Z taskName=a reason=due",
    ]


def test_starts_without_ends_are_forgotten(
    log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runscheduler_output, "_MOST_STARTS", 2)
    publish([_started(run) for run in (1, 2, 3)])
    publish(
        [events.TaskRunCompleted(at=DUE, task_name="a", duration=2, run=run) for run in (1, 2, 3)]
    )
    assert [" (due " in line for line in _lines(log)] == [False, True, True]


def test_a_run_by_hand(log: io.StringIO) -> None:
    publish([_started(reason="manual")])
    publish([events.TaskRunCompleted(at=DUE, task_name="report-daily", duration=0, run=1)])
    assert _lines(log) == ["INFO    report-daily succeeded in <1 ms (manual)"]
