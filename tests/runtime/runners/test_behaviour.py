"""One life of a run, whoever calls it: the same tests over all runners."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, connections

from django_declarative_cron.core.retry import RetryPolicy
from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.runtime import work
from django_declarative_cron.runtime.outcome import TRACEBACK_LENGTH
from django_declarative_cron.store import manual_runs
from django_declarative_cron.store.manual_runs import Effect
from django_declarative_cron.store.operator_actions import Act

from ..conftest import TIMEOUT
from . import callbacks
from .conftest import Bench, eventually

HAS_TASKS = find_spec("django.tasks") or find_spec("django_tasks")
KINDS = ["thread", "coroutine", "process", *(["django_tasks"] if HAS_TASKS else [])]


@pytest.fixture(params=KINDS)
def bench(
    request: pytest.FixtureRequest, share_server: None, make_bench: Callable[..., Bench]
) -> Bench:
    return make_bench(request.param)


@pytest.mark.parametrize(
    ("callback", "args", "changes", "result"),
    [
        ("ok", (), {}, None),
        ("ok", (), {"timeout": TIMEOUT}, None),
        ("gives_value", (2, 3), {}, {"sum": 5, "of": [2, 3]}),
    ],
    ids=["in time", "within its limit", "with a result"],
)
def test_a_run_that_returns_succeeds_and_its_result_is_kept(
    bench: Bench, callback: str, args: tuple[int, ...], changes: dict[str, Any], result: Any
) -> None:
    run = bench.run(callback, *args, **changes)
    assert (run.outcome, run.error, run.traceback) == ("succeeded", "", "")
    assert run.result == result
    assert [user.username for user in User.objects.all()] == ["of t"] * (callback == "ok")
    (completed,) = bench.heard.wait_for("TaskRunCompleted")
    assert completed.at == run.finished_at
    assert 0 <= completed.duration < TIMEOUT


@pytest.mark.requirement("003 Error Handling/1", "003 Resource Limits/2")
@pytest.mark.parametrize(
    ("callback", "changes", "outcome", "error"),
    [
        ("fails", {}, "failed", "ValueError: it went wrong"),
        ("leaves", {}, "failed", "SystemExit: 3"),
        ("fails_unreadably", {}, "failed", "UnreadableError: (its text cannot be read)"),
        ("until_cancelled", {"timeout": 0.3}, "timed_out", "timed out after 0.3 s"),
    ],
)
def test_whatever_it_raises_is_a_failure_and_so_is_its_time_limit(
    bench: Bench, callback: str, changes: dict[str, Any], outcome: str, error: str
) -> None:
    run = bench.run(callback, **changes)
    assert (run.outcome, run.error, run.result) == (outcome, error, None)
    if outcome == "failed":
        assert "in " + callback in run.traceback
    assert "in perform" not in run.traceback
    assert "in invoke" not in run.traceback
    (failed,) = bench.heard.wait_for("TaskRunFailed")
    assert failed.next_retry_at is not None
    assert run.started_at is not None and run.finished_at is not None
    took = (run.finished_at - run.started_at).total_seconds()
    assert changes.get("timeout", 0) <= took < TIMEOUT


def test_it_is_told_everything_of_its_run(bench: Bench) -> None:
    given = {"shop": ["north", 1]}
    run = bench.run("gives_its_run", meta=given, retry=RetryPolicy(max_attempts=7))
    triggered = run.scheduled_for.isoformat().replace("+00:00", "Z")
    assert run.result == {
        "task_name": "t",
        "scheduled_for": str(run.scheduled_for),
        "started_at": str(run.started_at),
        "attempt": "1",
        "reason": "manual",
        "timezone": "UTC",
        "id": str(run.pk),
        "meta": str({**given, "cron_name": "t", "cron_triggered_at": triggered}),
        "max_attempts": "7",
    }


def test_what_it_logs_is_kept_and_it_knows_its_run(bench: Bench) -> None:
    run = bench.run("logs")
    assert (run.outcome, run.error) == ("succeeded", "")
    lines = run.log.splitlines()
    assert [line.partition(" WARNING ")[2] for line in lines] == [
        "tests.runtime.runners: it is warm",
        "tests.runtime.runners: current t True",
    ]


@contextmanager
def watched() -> Iterator[list[float]]:
    """Give the most CPU seconds for which no other thread of this process could work."""
    longest, over = [0.0], threading.Event()

    def look() -> None:
        while not over.is_set():
            began = time.process_time()
            over.wait(0.01)
            longest[0] = max(longest[0], time.process_time() - began)

    thread = threading.Thread(target=look)
    thread.start()
    yield longest
    over.set()
    thread.join()


def test_enormous_exceptions_results_and_logs_hold_nobody_up(bench: Bench) -> None:
    with watched() as longest:
        bench.start(bench.task("t", "fails_enormously"))
        failed = bench.ended("t")
        bench.start(bench.task("u", "logs_and_gives_enormously"))
        run = bench.ended("u")
    assert failed.outcome == "failed"
    assert failed.error.startswith("KeyError: 'xxx")
    assert len(failed.traceback) <= TRACEBACK_LENGTH
    assert (run.outcome, run.result) == ("succeeded", None)
    assert "What the callback returned is not kept: it has more than" in run.log
    assert longest[0] < 1


def test_a_cancelled_run_ends_and_is_recorded_as_cancelled(bench: Bench) -> None:
    bench.start(bench.task("t", "until_cancelled"))
    (began,) = bench.noted("began")
    running, act = TaskRun.objects.get(pk=int(began.split()[1])), Act("", datetime.now(UTC))
    assert manual_runs.cancel(running, act) is Effect.ASKED
    assert manual_runs.cancel(running, act) is Effect.NONE
    run = bench.ended()
    assert (run.outcome, run.error) == ("cancelled", "cancelled")
    bench.heard.wait_for("TaskRunCancelled")
    assert ScheduledTask.objects.get().pending_retry_until is None


def test_a_stop_is_told_to_the_run_and_waits_for_its_end(bench: Bench) -> None:
    bench.start(bench.task("t", "until_stopping"))
    bench.noted("began")
    assert bench.scheduler.stop()
    assert TaskRun.objects.get().outcome == "succeeded"


def test_many_runs_each_end_once_and_the_scheduler_is_unharmed(bench: Bench) -> None:
    names = [f"t{n}" for n in range(24)]
    before = threading.active_count()
    bench.start(*[bench.task(name, "ok") for name in names])
    bench.heard.wait_for("TaskRunCompleted", len(names))
    assert User.objects.count() == len(names)
    assert sorted(TaskRun.objects.values_list("task_name", flat=True)) == sorted(names)
    assert set(TaskRun.objects.values_list("outcome", flat=True)) == {"succeeded"}
    assert bench.scheduler.is_alive
    eventually(lambda: (bench.load().busy, bench.load().queued, bench.load().stuck) == (0, 0, 0))
    bench.scheduler.stop()
    connections.close_all()
    assert eventually(lambda: threading.active_count() <= before + 1)


def test_a_child_that_leaves_the_callback_ends_as_a_program_does(
    bench: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    run = bench.run("forks_children")
    assert (run.outcome, run.error) == ("succeeded", "")
    assert run.result == list(callbacks.ENDS_OF_CHILDREN.values())
    output = run.output if bench.kind == "process" else "".join(capfd.readouterr())
    assert output.count("printed by a child\n") == len(run.result)
    assert output.count("its last words\n") == 1
    assert output.count("\nLookupError: its error\n") == 1
    assert len(bench.heard.of("TaskRunCompleted")) == 1


# --- a callback that returns code in place of running it has failed ---


@pytest.mark.parametrize("kind", ["thread", "process"])
@pytest.mark.parametrize(
    ("callback", "returned"),
    [
        ("gives_generator", "generator"),
        ("decorated", "generator"),
        ("gives_map", "map"),
        ("is_context_manager", "_GeneratorContextManager"),
        ("gives_coroutine_asynchronously", "coroutine"),
        ("gives_generator_asynchronously", "generator"),
    ],
)
def test_code_that_is_returned_and_not_run_is_a_failure(
    share_server: None, make_bench: Callable[..., Bench], kind: str, callback: str, returned: str
) -> None:
    bench = make_bench(kind)
    run = bench.run(callback)
    assert (run.outcome, run.error) == (
        "failed",
        f"NothingRanError: the callback returned a {returned}, which nothing iterates over or "
        "awaits: its code has not run",
    )
    assert bench.notes.read_text() == ""


# --- whatever a run leaves in its thread, context or connection reaches no other run ---

CLEAN = 65


@pytest.mark.parametrize("kind", ["thread", "coroutine", "process"])
@pytest.mark.parametrize("longest", [0, None])
def test_runs_beside_one_that_leaves_everything_see_nothing_of_it(
    share_server: None,
    make_bench: Callable[..., Bench],
    kind: str,
    longest: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = make_bench(kind, WORKERS=3)
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", longest)
    expected = callbacks.sees()
    dirty = [f"dirty-{number}" for number in range(3)]
    clean = [f"clean-{number}" for number in range(CLEAN)]
    bench.scheduler.initialize(
        [
            *(bench.task(each, "leaves_everything") for each in dirty),
            *(bench.task(each, "sees") for each in clean),
        ]
    )
    bench.ask(*dirty)
    bench.heard.wait_for("TaskRunCompleted", len(dirty))
    bench.ask(*dirty, *clean)
    bench.heard.wait_for("TaskRunCompleted", 2 * len(dirty) + CLEAN)
    found = list(TaskRun.objects.filter(task_name__in=clean).values_list("result", flat=True))
    assert found == [expected] * CLEAN


# --- a run's own database work and its success: both, or neither ---

in_one_transaction = pytest.mark.parametrize("bench", ["thread", "process"], indirect=True)


@in_one_transaction
def test_work_and_success_are_committed_and_told_once(bench: Bench) -> None:
    run = bench.run("works_atomically", atomic=True)
    assert (run.outcome, run.error, run.result) == ("succeeded", "", "done")
    assert User.objects.count() == 2
    (completed,) = bench.heard.wait_for("TaskRunCompleted")
    assert completed.at == run.finished_at
    task = ScheduledTask.objects.get()
    assert (task.running_run, task.last_success_at) == (None, run.finished_at)
    assert bench.heard.of("TaskRunResultDiscarded") == []


@in_one_transaction
@pytest.mark.parametrize(
    ("callback", "error"),
    [
        ("works_and_fails", "ValueError: it went wrong"),
        ("works_and_leaves_a_savepoint", "UnbalancedTransactionError: the callback left"),
        ("works_and_gives_generator", "NothingRanError: the callback returned a generator"),
    ],
)
def test_a_failure_leaves_nothing_of_the_work(bench: Bench, callback: str, error: str) -> None:
    run = bench.run(callback, atomic=True)
    assert (run.outcome, run.error[: len(error)]) == ("failed", error)
    assert User.objects.count() == 0


def test_a_process_that_dies_leaves_nothing_of_the_work(
    share_server: None, make_bench: Callable[..., Bench]
) -> None:
    run = make_bench("process").run("works_and_dies", atomic=True)
    assert (run.outcome, run.error) == ("failed", "RunLostError: ended by SIGKILL")
    assert User.objects.count() == 0


@in_one_transaction
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


@in_one_transaction
def test_a_run_that_was_asked_to_end_leaves_nothing_of_its_work(bench: Bench) -> None:
    if connection.vendor == "sqlite" and bench.kind == "process":
        pytest.skip("the test's own statements wait for the file")
    run = bench.run("works_until_cancelled", atomic=True, timeout=0.3)
    assert run.outcome == "timed_out"
    assert User.objects.count() == 0


@in_one_transaction
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
        rows = TaskRun.objects.exclude(pk__in=known).filter(finished_at__isnull=False)
        run = eventually(rows.first)
        assert User.objects.count() == (2 if run.outcome == "succeeded" else 0), (at, statements)
        outcomes.append(run.outcome)
        if len(statements) <= at:
            break
    assert outcomes[-1] == "succeeded"
    assert set(outcomes[:-1]) == {"failed"}
    assert len(outcomes) > 8


def _failing_at(number: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let one statement of a run's transaction fail, or its commit, which comes last."""
    statements: list[str] = []

    def execute(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append(sql)
        if len(statements) - 1 == number:
            raise OperationalError(sql)
        return execute(sql, params, many, context)

    @contextmanager
    def transaction_of_run(using: str, failed: list[BaseException]) -> Iterator[None]:
        with _REAL(using, failed), connections[using].execute_wrapper(execute):
            yield
            statements.append("COMMIT")
            if len(statements) - 1 == number:
                raise OperationalError("COMMIT")

    monkeypatch.setattr(work.results, "transaction_of_run", transaction_of_run)
    return statements


_REAL = work.results.transaction_of_run
