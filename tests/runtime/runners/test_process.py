"""Runs in processes: ended, crashed, limited, orphaned; nothing is lost, nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from django_declarative_cron import callables, conf, handlers
from django_declarative_cron.callables import Targets
from django_declarative_cron.core.declarations.declaration import Target
from django_declarative_cron.core.declarations.problems import UnresolvableError
from django_declarative_cron.models import Origin, TaskRun
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.runtime.runners import django_tasks_worker, fork_server, process
from django_declarative_cron.runtime.runners.process_protocol import Talk
from django_declarative_cron.runtime.work import Run, Work
from django_declarative_cron.store import manual_runs
from django_declarative_cron.store.operator_actions import Act

from ...process import Process, is_running
from ..conftest import RunNow
from .conftest import Bench, descriptors, eventually

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def bench(share_server: None, make_bench: Callable[..., Bench]) -> Bench:
    return make_bench("process")


@pytest.fixture
def own_bench(make_bench: Callable[..., Bench]) -> Bench:
    """Give a bench with a server of its own."""
    return make_bench("process")


def _server(bench: Bench) -> int:
    runner = bench.scheduler._engine.runners._by_name["process"]
    return int(runner.server.pid)  # type: ignore[attr-defined]


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("callback", ["spins", "reads", "is_deaf", "leaves_a_deaf_child"])
def test_a_run_that_never_returns_is_ended_with_what_it_started(
    bench: Bench, callback: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P57."""
    monkeypatch.setattr(process, "GRACE", 0.5)
    run = bench.run_beyond(callback)
    assert (run.outcome, run.error[:15]) == ("timed_out", "timed out after")
    for pid in map(int, bench.noted("began")[0].split()[1:]):
        assert eventually(lambda pid=pid: not is_running(pid))
    assert bench.scheduler.is_alive


def test_a_run_that_is_ended_may_clean_up_and_its_place_is_kept(bench: Bench) -> None:
    run = bench.run_beyond("cleans_up")
    assert run.outcome == "timed_out"
    assert bench.noted("cleaned up")
    assert "in cleans_up" in run.traceback


@pytest.mark.slow
def test_a_process_that_closed_every_descriptor_is_ended_all_the_same(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.2)
    assert bench.run_beyond("closes_everything_and_waits").outcome == "timed_out"


@pytest.mark.parametrize(
    ("callback", "options", "error"),
    [
        ("crashes", {}, "ended by SIGSEGV"),
        ("exits", {}, "the process left with exit code 7 before the callback had ended"),
        (
            "closes_everything",
            {},
            "the callback closed descriptors that are not its own: how it ended is not known",
        ),
        (
            "eats_time",
            {"cpu_limit": 1},
            "ended by SIGXCPU: it used the 1 s of the processor that it may",
        ),
    ],
)
def test_a_process_that_leaves_without_a_result_is_a_failure_that_says_how(
    bench: Bench, callback: str, options: dict[str, Any], error: str
) -> None:
    run = bench.run(callback, options=options)
    assert (run.outcome, run.error, run.traceback) == ("failed", f"RunLostError: {error}", "")
    if callback == "closes_everything":
        assert bench.noted("went on") == ["went on with 0 bytes in 260 files"]


def test_a_memory_limit_is_a_failure_of_the_run_only(bench: Bench) -> None:
    run = bench.run("eats_memory", options={"memory_limit": 2**30})
    assert (run.outcome, run.error) == ("failed", "MemoryError")


def test_a_run_cannot_leave_the_group_that_is_ended_with_it(bench: Bench) -> None:
    assert bench.run("leads_a_session").result is True


def test_the_end_of_what_it_prints_is_kept(bench: Bench) -> None:
    run = bench.run("prints")
    assert run.outcome == "succeeded"
    assert run.output.endswith("x" * 1000 + "the end\n")
    assert 60 * 1024 < len(run.output) < 68 * 1024


@pytest.mark.slow
def test_the_next_occurrence_ends_a_run_that_gives_way(bench: Bench) -> None:
    task = bench.task("t", "until_stopping", overlap_policy="cancel_previous")
    bench.scheduler.initialize([{**task, "cron": "* * * * * *", "dialect": "ojs"}])
    ended = TaskRun.objects.filter(error="cancelled", traceback__contains="in until_stopping")
    assert eventually(ended.first).outcome == "cancelled"


@pytest.mark.slow
@pytest.mark.alike
@pytest.mark.parametrize(
    ("killed", "error"),
    [("server", "the process that forks runs has ended"), ("process", "ended by SIGKILL")],
)
def test_whichever_process_is_killed_what_the_run_logged_outlives_it_and_what_it_started_does_not(
    own_bench: Bench, killed: str, error: str
) -> None:
    own_bench.start(own_bench.task("t", "leaves_a_fork_behind"))
    child, grandchild = map(int, own_bench.noted("began")[0].split()[1:])
    server = _server(own_bench)
    os.kill(server if killed == "server" else child, signal.SIGKILL)
    run = own_bench.ended()
    assert (run.outcome, run.error) == ("failed", f"RunLostError: {error}")
    assert "leaves one behind" in run.log
    assert eventually(lambda: not is_running(child) and not is_running(grandchild))
    own_bench.start(own_bench.task("u", "gives_value", 1, 2))
    assert own_bench.ended("u").result == {"sum": 3, "of": [1, 2]}
    assert (_server(own_bench) != server) is (killed == "server")


@pytest.fixture
def begun(own_bench: Bench) -> tuple[int, int]:
    """Give the server, and the process of a run that goes on until the scheduler stops."""
    own_bench.start(own_bench.task("t", "until_stopping"))
    own_bench.noted("began")
    server = _server(own_bench)
    (child,) = _children(server)
    return server, child


@pytest.mark.slow
@pytest.mark.alike
def test_a_signal_to_everything_ends_no_run_and_the_scheduler_tells_it_to_stop(
    own_bench: Bench, begun: tuple[int, int]
) -> None:
    for pid in begun:
        os.kill(pid, signal.SIGTERM)
    own_bench.scheduler.request_stop()
    assert own_bench.ended().outcome == "succeeded"
    assert is_running(begun[0])


@pytest.mark.slow
@pytest.mark.alike
def test_a_server_that_begins_no_run_in_time_is_replaced(
    own_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_bench.start(own_bench.task("t", "until_stopping"), own_bench.task("u", "note", "called"))
    own_bench.noted("began")
    own_bench.ended("u")
    first = _server(own_bench)
    (child,) = _children(first)
    os.kill(first, signal.SIGSTOP)
    TaskRun.objects.filter(task_name="u").delete()
    with monkeypatch.context() as hurried:
        hurried.setattr(process, "LONGEST_START", 0.5)
        own_bench.ask("u")
        run = own_bench.ended("u")
    assert run.error == "RunLostError: the process did not begin in time"
    assert own_bench.ended("t").error == "RunLostError: the process that forks runs has ended"
    assert not is_running(first) and not is_running(child)
    TaskRun.objects.filter(task_name="u").delete()
    own_bench.ask("u")
    assert own_bench.ended("u").outcome == "succeeded"
    assert own_bench.noted("called", 2) == ["called", "called"]


@pytest.mark.slow
@pytest.mark.alike
def test_runs_end_although_their_server_hangs(
    own_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.5)
    own_bench.start(own_bench.task("t", "is_deaf"), own_bench.task("u", "until_stopping"))
    pids = list(map(int, own_bench.noted("began ")[0].split()[1:]))
    own_bench.noted("began", 2)
    os.kill(_server(own_bench), signal.SIGSTOP)
    manual_runs.cancel(TaskRun.objects.get(task_name="t"), Act("", datetime.now(UTC)))
    assert own_bench.ended("t").outcome == "cancelled"
    for pid in pids:
        assert eventually(lambda pid=pid: not is_running(pid))
    own_bench.close()
    assert own_bench.ended("u").outcome == "succeeded"


@pytest.mark.slow
def test_nothing_is_left_behind(own_bench: Bench) -> None:
    assert own_bench.run("ok").outcome == "succeeded"
    server, before = _server(own_bench), descriptors()
    theirs = len(os.listdir(f"/proc/{server}/fd"))
    names = [f"u{n}" for n in range(20)]
    own_bench.start(*[own_bench.task(name, "ok") for name in names])
    own_bench.heard.wait_for("TaskRunCompleted", 1 + len(names))
    assert eventually(lambda: _children(server) == [])
    # The server lets go of a child's pipes right after the child itself.
    assert eventually(lambda: len(os.listdir(f"/proc/{server}/fd")) == theirs)
    own_bench.scheduler.stop()
    assert not is_running(server)
    assert descriptors() <= before


@pytest.mark.slow
def test_the_runs_of_a_scheduler_that_is_killed_end_with_it(
    make_bench: Callable[..., Bench], start: Callable[..., Process], run_now: RunNow
) -> None:
    bench = make_bench("process")
    process = start(DDC_TEST_SPINS="1").up()
    run_now("spins")
    pid = int(bench.noted("began")[0].split()[1])
    assert is_running(pid)
    process.child.kill()
    assert eventually(lambda: not is_running(pid))


def test_a_project_without_a_settings_module_is_told_so(
    own_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE")
    run = own_bench.run("ok")
    assert run.outcome == "failed"
    assert run.error == (
        "ProcessesUnavailableError: DJANGO_SETTINGS_MODULE is not set:"
        " a process would not find the project's settings"
    )


# --- the conversation of a run with its scheduler: nothing goes elsewhere ---


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Talk]]:
    """Give the scheduler's end and the run's."""
    mine, theirs = socket.socketpair()
    talk = Talk(theirs)
    yield mine, talk
    talk._socket.close()
    mine.close()


def test_messages_that_come_in_pieces_are_all_heard_until_the_scheduler_is_gone(
    ends: tuple[socket.socket, Talk],
) -> None:
    scheduler, talk = ends
    messages = talk.messages()
    scheduler.sendall(b'{"id": 1}\n{"ending": "cancelled"}\n{"stop')
    assert [next(messages), next(messages)] == [{"id": 1}, {"ending": "cancelled"}]
    scheduler.sendall(b'ping": true}\n')
    assert next(messages) == {"stopping": True}
    scheduler.close()
    assert list(messages) == []
    assert talk.is_ours


def test_nothing_is_said_into_what_got_its_number(
    ends: tuple[socket.socket, Talk], tmp_path: Path
) -> None:
    scheduler, talk = ends
    assert talk.say(log="a")
    path, number = tmp_path / "file", talk._socket.fileno()
    opened = os.open(path, os.O_RDWR | os.O_CREAT)
    os.dup2(opened, number)
    assert not talk.is_ours
    assert not talk.say(log="b")
    talk.break_line()
    assert list(talk.messages()) == []
    assert path.read_bytes() == b""
    assert [json.loads(line) for line in scheduler.recv(100).splitlines()] == [{"log": "a"}]
    os.close(opened)


# --- text that came over HTTP: in no process is anything imported for it (CRON-04) ---

PATH = "spilled.leak"


@pytest.fixture
def spilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let there be a module that a dotted path leads into."""
    (tmp_path / "spilled.py").write_text("def leak(): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("spilled", None)


@pytest.fixture
def posted(spilled: None, monkeypatch: pytest.MonkeyPatch) -> Target:
    """Give what a scheduler that has the type makes of it; other processes do not have it."""
    with monkeypatch.context() as here:
        here.setattr(handlers, "find", {PATH: print}.get)
        declaration, problems = conf.posted({"name": "a", "cron": "0 * * * *", "type": PATH})
    assert declaration is not None, problems
    return declaration.target


def ordered(target: Target) -> tuple[Work, dict[str, Any]]:
    now = system_clock.now()
    run = Run("a", now, now, 1, "due", "UTC", threading.Event(), threading.Event())
    work = Work(1, run, target, lambda result: None)
    return work, json.loads(json.dumps(process._order(work, {})))


def test_a_process_of_a_run_imports_nothing_for_it(posted: Target) -> None:
    work, order = ordered(posted)
    result = fork_server._called(order, work)
    assert not result.succeeded
    assert "is not a registered type" in result.error
    assert "spilled" not in sys.modules


def test_a_server_of_processes_loads_nothing_for_it(posted: Target) -> None:
    assert list(process._loaded([posted])) == []
    assert list(process._loaded([Targets().type(PATH)])) == [PATH]


def taken(origin: str) -> Any:
    data = {"callback": PATH, "command": False, "args": []}
    return SimpleNamespace(task=SimpleNamespace(origin=origin, declaration=data))


def test_a_worker_of_an_engine_imports_nothing_for_it(spilled: None) -> None:
    with pytest.raises(UnresolvableError, match="is not a registered type"):
        django_tasks_worker._target(taken(Origin.HTTP))
    assert "spilled" not in sys.modules
    assert (
        django_tasks_worker._target(taken(Origin.SETTINGS)).function is sys.modules["spilled"].leak
    )


def test_no_command_is_found_for_it() -> None:
    with pytest.raises(UnresolvableError, match="is not accepted over HTTP"):
        callables.again("check", is_command=True, is_from_outside=True)


def test_paths_of_settings_are_imported_in_the_process_of_a_run(spilled: None) -> None:
    _, order = ordered(Target(PATH, cast(Any, None)))
    found = callables.again(
        order["callback"], is_command=order["command"], is_from_outside=order["outside"]
    )
    assert found.function is sys.modules["spilled"].leak
