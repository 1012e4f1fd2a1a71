"""Runs in the workers of an engine: through the database, through Redis; a worker's signals."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from django_declarative_cron.models import SchedulerInstance, TaskRun
from django_declarative_cron.runtime.runners import django_tasks, django_tasks_worker
from django_declarative_cron.store import manual_runs
from django_declarative_cron.store.manual_runs import Effect
from django_declarative_cron.store.operator_actions import Act

from .. import process_settings
from ..conftest import TIMEOUT
from .conftest import HERE, Bench, eventually

pytestmark = [
    pytest.mark.skipif(not find_spec("django_tasks_db"), reason="needs django-tasks-db"),
]

WORKERS = {
    "database": ["db_worker", "--interval", "0.2", "--no-startup-delay", "--no-reload"],
    "redis": ["rqworker", "default", "--job-class", "django_tasks_rq.Job"],
}


@pytest.fixture
def redis() -> Iterator[str]:
    """Start a Redis of the test's own."""
    if not shutil.which("redis-server"):
        pytest.skip("redis-server is not installed")
    # Paths of sockets may have a hundred characters only.
    folder = Path(tempfile.mkdtemp(prefix="ddc-"))
    socket = folder / "redis.sock"
    command = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", ""]
    server = subprocess.Popen([*command, "--dir", str(folder)], stdout=subprocess.DEVNULL)
    eventually(socket.exists)
    yield f"unix://{socket}"
    server.kill()
    server.wait()
    shutil.rmtree(folder)


@pytest.fixture(params=["database", pytest.param("redis", marks=pytest.mark.alike)])
def engine(
    request: pytest.FixtureRequest,
    share_server: None,
    make_bench: Callable[..., Bench],
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> Bench:
    """Give a bench whose runs an engine's worker calls."""
    bench = make_bench("django_tasks")
    monkeypatch.setenv("DDC_TEST_ENGINE", request.param)
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.runtime.process_settings")
    if request.param == "redis":
        monkeypatch.setenv("DDC_TEST_REDIS", request.getfixturevalue("redis"))
    settings.TASKS = {"default": process_settings.ENGINES[request.param]}
    settings.DECLARATIVE_CRON = process_settings.DECLARATIVE_CRON
    if request.param == "redis":
        settings.RQ_QUEUES = {"default": {"URL": os.environ["DDC_TEST_REDIS"]}}
    return bench


def _is_redis() -> bool:
    return os.environ["DDC_TEST_ENGINE"] == "redis"


@pytest.fixture
def worker(engine: Bench, tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Start workers; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def begin() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "django", *WORKERS[os.environ["DDC_TEST_ENGINE"]]]
        with (tmp_path / f"worker{len(started)}.log").open("wb") as log:
            started.append(
                subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            )
        return started[-1]

    yield begin
    for each in started:
        _kill(each)
    for path in tmp_path.glob("worker*.log"):
        sys.stdout.write(path.read_text(errors="replace"))


def _kill(worker: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


@pytest.mark.slow
def test_a_worker_calls_runs_records_them_and_passes_its_stop_on(
    engine: Bench, worker: Callable[[], subprocess.Popen[bytes]]
) -> None:
    process = worker()
    engine.start(
        engine.task("t", "gives_value", 2, 3),
        engine.task("u", "fails"),
        engine.task("v", "logs"),
        engine.task("w", "until_cancelled", timeout=0.3),
    )
    run = engine.ended("t")
    assert (run.outcome, run.result) == ("succeeded", {"sum": 5, "of": [2, 3]})
    assert (engine.ended("u").outcome, engine.ended("u").error) == (
        "failed",
        "ValueError: it went wrong",
    )
    assert "it is warm" in engine.ended("v").log
    assert engine.ended("w").outcome == "timed_out"
    eventually(lambda: engine.load().queued == 0)
    assert engine.scheduler.running == 0
    if _is_redis():
        return  # RQ calls each run in a process of its own, and does not stop it.
    assert SchedulerInstance.objects.get(pk=run.instance_id).pid == process.pid
    engine.start(engine.task("x", "until_stopping"))
    engine.noted("began", 2)
    process.terminate()
    assert engine.ended("x").outcome == "succeeded"
    assert process.wait(TIMEOUT) == 0


@pytest.mark.slow
def test_a_worker_that_dies_is_noticed_and_the_run_restarted_once(
    engine: Bench, worker: Callable[[], subprocess.Popen[bytes]]
) -> None:
    process = worker()
    engine.start(engine.task("t", "until_cancelled"))
    (began,) = engine.noted("began")
    _kill(process)
    # RQ calls each job in a process of its own, with a group of its own.
    with suppress(ProcessLookupError):
        os.kill(int(began.split()[2]), signal.SIGKILL)
    eventually(lambda: TaskRun.objects.filter(outcome="interrupted").exists())
    worker()
    engine.noted("began", 2)
    (again,) = TaskRun.objects.filter(outcome="running")
    assert again.reason == "orphaned"
    assert manual_runs.cancel(again, Act("", datetime.now(UTC))) is Effect.ASKED
    assert engine.ended().outcome in ("cancelled", "interrupted")
    eventually(lambda: TaskRun.objects.filter(outcome="cancelled").exists())


@pytest.mark.slow
def test_a_run_that_waits_is_let_go_at_a_stop_and_its_message_does_nothing(
    engine: Bench, worker: Callable[[], subprocess.Popen[bytes]]
) -> None:
    engine.start(engine.task("t", "until_cancelled"))
    eventually(lambda: engine.load().queued == 1)
    assert engine.scheduler.stop()
    run = TaskRun.objects.get()
    assert (run.outcome, run.instance) == ("running", None)
    engine.scheduler.initialize([engine.task("t", "gives_value", 1, 1)])
    eventually(lambda: engine.load().queued == 1)
    worker()
    eventually(lambda: TaskRun.objects.filter(outcome="succeeded").exists())
    assert sorted(TaskRun.objects.values_list("outcome", flat=True)) == ["interrupted", "succeeded"]
    assert engine.notes.read_text() == ""


@pytest.mark.slow
def test_a_message_that_was_lost_is_sent_again(
    engine: Bench,
    worker: Callable[[], subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(django_tasks, "AGAIN", 0.2)
    engine.start(engine.task("t", "gives_value", 1, 1))
    eventually(lambda: engine.load().queued == 1)
    if _is_redis():
        import django_rq

        queue = django_rq.get_queue("default")
        eventually(lambda: queue.count)
        queue.empty()
    else:
        from django_tasks_db.models import DBTaskResult

        eventually(lambda: DBTaskResult.objects.all().delete()[0])
    worker()
    run = engine.ended()
    assert (run.outcome, run.attempt) == ("succeeded", 1)


def test_a_run_that_nobody_takes_up_is_told_of_and_can_be_cancelled(
    engine: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(django_tasks, "LONGEST_QUIET", 0.2)
    engine.start(engine.task("t", "ok"))
    eventually(lambda: engine.load().queued == 1)
    eventually(lambda: "is a worker at work?" in caplog.text)
    manual_runs.cancel(TaskRun.objects.get(), Act("", datetime.now(UTC)))
    assert engine.ended().outcome == "cancelled"
    assert engine.load().queued == 0


@pytest.mark.parametrize(
    ("callback", "args", "value"),
    [("made_a_task", [2, 3], 5), ("takes_context", ["by"], "by default")],
)
def test_a_task_of_django_is_a_callback(
    make_bench: Callable[..., Bench], callback: str, args: list[Any], value: Any
) -> None:
    bench = make_bench("django_tasks")
    entry = bench.task("t", callback, *args)
    bench.changes["t"] = {}
    bench.start(entry)
    run = bench.ended()
    assert (run.outcome, run.error, run.result) == ("succeeded", "", value)
    (declaration,) = bench.scheduler.declarations
    assert (declaration.runner, declaration.target.text) == ("django_tasks", f"{HERE}.{callback}")


def test_what_the_engine_refuses_is_a_failure(make_bench: Callable[..., Bench]) -> None:
    run = make_bench("django_tasks").run("ok", options={"backend": "nowhere"})
    assert run.outcome == "failed"
    assert "nowhere" in run.error


# --- a worker's own signals are its own, and are noted while it calls a run ---


@pytest.fixture
def numbers() -> Iterator[list[int]]:
    """Give the signals that the worker's handler hears."""
    numbers: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGTERM, before)


def test_a_signal_is_noted_and_handled_as_ever(numbers: list[int]) -> None:
    stops: list[int] = []
    handler = signal.getsignal(signal.SIGTERM)
    with django_tasks_worker._noted(stops):
        signal.raise_signal(signal.SIGTERM)
    assert (stops, numbers) == ([signal.SIGTERM], [signal.SIGTERM])
    assert signal.getsignal(signal.SIGTERM) is handler
    signal.raise_signal(signal.SIGTERM)
    assert (stops, numbers) == ([signal.SIGTERM], [signal.SIGTERM, signal.SIGTERM])


def test_a_handler_of_the_callbacks_own_stays(numbers: list[int]) -> None:
    with django_tasks_worker._noted([]):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_what_ends_a_worker_without_a_handler_goes_on_to(numbers: list[int]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with django_tasks_worker._noted([]):
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_other_threads_have_no_signals(numbers: list[int]) -> None:
    handler, inside = signal.getsignal(signal.SIGTERM), list[Any]()

    def called() -> None:
        with django_tasks_worker._noted([]):
            inside.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=called)
    thread.start()
    thread.join()
    assert inside == [handler]
