"""``runscheduler``, called in this process: how it ends where something is wrong.

What signals do to it is shown with processes, in ``tests/runtime``.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError

from django_declarative_cron import Scheduler
from django_declarative_cron.exceptions import StopSchedulerError
from django_declarative_cron.management.commands import runscheduler
from django_declarative_cron.models import SchedulerInstance, SchedulerState, TaskRun
from django_declarative_cron.store import database

from .conftest import Answer, Screen

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
    path, delay = "tests.management.callbacks.nothing", timedelta(minutes=5)
    settings.SCHEDULED_TASKS = [{**often, "callback": path, "retry_delay": delay}]

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
