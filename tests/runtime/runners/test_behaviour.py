"""One life of a run, whoever calls it: the same tests over all runners."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections

from django_declarative_cron.core.retry import RetryPolicy
from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.runtime.outcome import TRACEBACK_LENGTH
from django_declarative_cron.store import manual_runs
from django_declarative_cron.store.manual_runs import Effect
from django_declarative_cron.store.operator_actions import Act

from ..conftest import FIVE_MINUTES, NEVER_TODAY, TIMEOUT
from . import leaving
from .conftest import Bench, eventually

HAS_TASKS = find_spec("django.tasks") or find_spec("django_tasks")
KINDS = ["thread", "coroutine", "process", *(["django_tasks"] if HAS_TASKS else [])]


@pytest.fixture(params=KINDS)
def bench(
    request: pytest.FixtureRequest, share_server: None, make_bench: Callable[..., Bench]
) -> Bench:
    return make_bench(request.param)


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


def test_a_run_does_its_work_and_succeeds(bench: Bench) -> None:
    run = bench.run("ok")
    assert (run.outcome, run.error, run.traceback) == ("succeeded", "", "")
    assert User.objects.get().username == "of t"
    (completed,) = bench.heard.wait_for("TaskRunCompleted")
    assert completed.at == run.finished_at
    assert 0 <= completed.duration < TIMEOUT


def test_what_it_returns_is_kept(bench: Bench) -> None:
    assert bench.run("gives_value", 2, 3).result == {"sum": 5, "of": [2, 3]}


def test_it_is_told_everything_of_its_run(bench: Bench) -> None:
    given = {"shop": ["north", 1]}
    run = bench.run("gives_its_run", meta=given, retry=RetryPolicy(max_attempts=7))
    assert run.result == {
        "task_name": "t",
        "scheduled_for": str(run.scheduled_for),
        "started_at": str(run.started_at),
        "attempt": "1",
        "reason": "manual",
        "timezone": "UTC",
        "id": str(run.pk),
        "meta": str(
            {
                "shop": ["north", 1],
                "cron_name": "t",
                "cron_triggered_at": run.scheduled_for.isoformat().replace("+00:00", "Z"),
            }
        ),
        "max_attempts": "7",
    }


@pytest.mark.requirement("003 Error Handling/1")
@pytest.mark.parametrize(
    ("callback", "error"),
    [
        ("fails", "ValueError: it went wrong"),
        ("leaves", "SystemExit: 3"),
        ("fails_unreadably", "UnreadableError: (its text cannot be read)"),
    ],
)
def test_whatever_it_raises_is_a_failure(bench: Bench, callback: str, error: str) -> None:
    run = bench.run(callback)
    assert (run.outcome, run.error) == ("failed", error)
    assert "in " + callback in run.traceback
    assert "in perform" not in run.traceback
    assert "in invoke" not in run.traceback
    assert run.result is None
    (failed,) = bench.heard.wait_for("TaskRunFailed")
    assert failed.next_retry_at is not None


def test_an_enormous_exception_holds_nobody_up(bench: Bench) -> None:
    with watched() as longest:
        run = bench.run("fails_enormously")
    assert run.outcome == "failed"
    assert run.error.startswith("KeyError: 'xxx")
    assert len(run.traceback) <= TRACEBACK_LENGTH
    assert longest[0] < 1


def test_an_enormous_result_and_log_hold_nobody_up(bench: Bench) -> None:
    with watched() as longest:
        run = bench.run("logs_and_gives_enormously")
    assert (run.outcome, run.result) == ("succeeded", None)
    assert "What the callback returned is not kept: it has more than" in run.log
    assert longest[0] < 1


def test_what_it_logs_is_kept_and_it_knows_its_run(bench: Bench) -> None:
    run = bench.run("logs")
    assert (run.outcome, run.error) == ("succeeded", "")
    lines = run.log.splitlines()
    assert [line.partition(" WARNING ")[2] for line in lines] == [
        "tests.runtime.runners: it is warm",
        "tests.runtime.runners: current t True",
    ]


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


@pytest.mark.requirement("003 Resource Limits/2")
def test_a_run_beyond_its_time_limit_is_recorded_as_timed_out(bench: Bench) -> None:
    run = bench.run("until_cancelled", timeout=0.3)
    assert (run.outcome, run.error) == ("timed_out", "timed out after 0.3 s")
    (failed,) = bench.heard.wait_for("TaskRunFailed")
    assert failed.next_retry_at is not None
    assert run.started_at is not None
    assert run.finished_at is not None
    assert 0.3 <= (run.finished_at - run.started_at).total_seconds() < TIMEOUT


def test_a_run_within_its_time_limit_succeeds(bench: Bench) -> None:
    assert bench.run("ok", timeout=TIMEOUT).outcome == "succeeded"


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


def test_an_atomic_run_that_returns_code_is_rolled_back(make_bench: Callable[..., Bench]) -> None:
    run = make_bench("thread").run("works_and_gives_generator", atomic=True)
    assert run.outcome == "failed"
    assert not User.objects.exists()


# --- whatever a run leaves in its thread, context or connection reaches no other run ---

CLEAN = 65


def _task(bench: Bench, name: str, callback: str) -> dict[str, Any]:
    is_async = bench.kind == "coroutine"
    bench._changes[name] = {"runner": "thread" if is_async else bench.kind}
    suffix = "_asynchronously" if is_async else ""
    return {
        "name": name,
        "cron": NEVER_TODAY,
        "callback": f"tests.runtime.runners.leaving.{callback}{suffix}",
        "retry_delay": FIVE_MINUTES,
    }


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
    expected = leaving.sees()
    dirty = [f"dirty-{number}" for number in range(3)]
    clean = [f"clean-{number}" for number in range(CLEAN)]
    bench.scheduler.initialize(
        [
            *(_task(bench, each, "leaves_everything") for each in dirty),
            *(_task(bench, each, "sees") for each in clean),
        ]
    )
    bench.ask(*dirty)
    bench.heard.wait_for("TaskRunCompleted", len(dirty))
    bench.ask(*dirty, *clean)
    bench.heard.wait_for("TaskRunCompleted", 2 * len(dirty) + CLEAN)
    found = list(TaskRun.objects.filter(task_name__in=clean).values_list("result", flat=True))
    assert found == [expected] * CLEAN
