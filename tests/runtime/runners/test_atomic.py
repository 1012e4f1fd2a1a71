"""A run's own database work and its success: both, or neither."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, connections

from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.runtime import work

from .conftest import Bench, eventually


@pytest.fixture(params=["thread", "process"])
def bench(
    request: pytest.FixtureRequest, share_server: None, make_bench: Callable[..., Bench]
) -> Bench:
    return make_bench(request.param)


def test_work_and_success_are_committed_and_told_once(bench: Bench) -> None:
    run = bench.run("works_atomically", atomic=True)
    assert (run.outcome, run.error, run.result) == ("succeeded", "", "done")
    assert User.objects.count() == 2
    (completed,) = bench.heard.wait_for("TaskRunCompleted")
    assert completed.at == run.finished_at
    task = ScheduledTask.objects.get()
    assert (task.running_run, task.last_success_at) == (None, run.finished_at)
    assert bench.heard.of("TaskRunResultDiscarded") == []


@pytest.mark.parametrize(
    ("callback", "error"),
    [
        ("works_and_fails", "ValueError: it went wrong"),
        ("works_and_leaves_a_savepoint", "UnbalancedTransactionError: the callback left"),
    ],
)
def test_a_failure_leaves_nothing_of_the_work(bench: Bench, callback: str, error: str) -> None:
    run = bench.run(callback, atomic=True)
    assert (run.outcome, run.error[: len(error)]) == ("failed", error)
    assert User.objects.count() == 0


def test_errors_after_the_commit_are_kept_beside_the_success(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.run("works_and_commits_hooks", atomic=True)
    (failed,) = bench.heard.wait_for("TaskCommitHookFailed")
    run = TaskRun.objects.get()
    assert (run.outcome, run.result) == ("succeeded", "done")
    assert run.error == failed.error == "on_commit: ValueError: it went wrong (and 1 more)"
    assert "in fails" in run.traceback and "SystemExit: 3" in run.traceback
    assert User.objects.count() == 2
    assert bench.noted("", 2) == ["first", "last"]
    assert len(bench.heard.of("TaskRunCompleted")) == 1
    assert not bench.heard.of("TaskRunResultDiscarded") and not bench.heard.of("TaskRunFailed")
    (record,) = eventually(
        lambda: [each for each in caplog.records if "TaskCommitHookFailed" in each.getMessage()]
    )
    assert record.levelname == "ERROR"


def test_a_run_that_was_asked_to_end_leaves_nothing_of_its_work(bench: Bench) -> None:
    if connection.vendor == "sqlite" and bench.kind == "process":
        pytest.skip("the test's own statements wait for the file")
    run = bench.run("works_until_cancelled", atomic=True, timeout=0.3)
    assert run.outcome == "timed_out"
    assert User.objects.count() == 0


def test_a_process_that_dies_leaves_nothing_of_the_work(
    share_server: None, make_bench: Callable[..., Bench]
) -> None:
    run = make_bench("process").run("works_and_dies", atomic=True)
    assert (run.outcome, run.error) == ("failed", "RunLostError: ended by SIGKILL")
    assert User.objects.count() == 0


@pytest.mark.skipif(
    "sqlite" in connections.databases["default"]["ENGINE"], reason="it lets nobody else write"
)
def test_a_run_that_was_taken_over_has_its_work_rolled_back(bench: Bench) -> None:
    bench.start(bench.task("t", "works_until_it_may_go_on", atomic=True))
    bench.noted("began")
    TaskRun.objects.filter(outcome="running").update(outcome="interrupted", running_slot=None)
    with bench.notes.open("a") as notes:
        notes.write("go on\n")
    eventually(lambda: bench.heard.of("TaskRunResultDiscarded"))
    assert User.objects.count() == 0
    assert TaskRun.objects.get().outcome == "interrupted"


class _Lost(OperationalError):
    """The connection, at the worst moment."""


def test_at_whichever_statement_it_fails_effects_and_success_never_part(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench("thread")
    task = bench.task("t", "works_atomically", atomic=True)
    bench.scheduler.initialize([task])
    outcomes = []
    for at in itertools.count():
        statements = _failing_at(at, monkeypatch)
        User.objects.all().delete()
        known = set(TaskRun.objects.values_list("pk", flat=True))
        bench.ask("t")
        run = eventually(
            lambda known=known: (
                TaskRun.objects.exclude(pk__in=known).filter(finished_at__isnull=False).first()
            )
        )
        assert User.objects.count() == (2 if run.outcome == "succeeded" else 0), (at, statements)
        outcomes.append(run.outcome)
        if len(statements) <= at:
            break
    assert outcomes[-1] == "succeeded"
    assert set(outcomes[:-1]) == {"failed"}
    assert len(outcomes) > 8


@pytest.mark.slow
def test_a_process_too_never_parts_effects_and_success(
    share_server: None, make_bench: Callable[..., Bench]
) -> None:
    bench = make_bench("process")
    outcomes = []
    for at in itertools.count():
        name = f"t{at}"
        task = bench.task(name, "works_and_loses_its_connection", at, atomic=True)
        bench.scheduler.initialize([task])
        User.objects.all().delete()
        bench.ask(name)
        run = bench.ended(name)
        assert User.objects.count() == (2 if run.outcome == "succeeded" else 0), (at, run.error)
        outcomes.append(run.outcome)
        if run.outcome == "succeeded":
            break
        assert run.error == f"OperationalError: lost at {at}"
    assert set(outcomes[:-1]) == {"failed"}
    assert len(outcomes) > 6


def _failing_at(number: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let one statement of a run's transaction fail, or its commit, which comes last."""
    statements: list[str] = []

    def execute(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append(sql)
        if len(statements) - 1 == number:
            raise _Lost(sql)
        return execute(sql, params, many, context)

    @contextmanager
    def transaction_of_run(using: str, failed: list[BaseException]) -> Iterator[None]:
        with real(using, failed), connections[using].execute_wrapper(execute):
            yield
            statements.append("COMMIT")
            if len(statements) - 1 == number:
                raise _Lost("COMMIT")

    real = _REAL
    monkeypatch.setattr(work.results, "transaction_of_run", transaction_of_run)
    return statements


_REAL = work.results.transaction_of_run
