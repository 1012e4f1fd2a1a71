"""Runs in processes: ended, crashed, limited, orphaned; and nothing is left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime.runners import process

from ...process import Process, is_running
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


@pytest.mark.parametrize(
    ("callback", "error"),
    [
        ("crashes", "RunLostError: ended by SIGSEGV"),
        ("exits", "RunLostError: the process left with exit code 7 before the callback had ended"),
    ],
)
def test_a_process_that_leaves_without_a_result_is_a_failure_that_says_how(
    bench: Bench, callback: str, error: str
) -> None:
    run = bench.run(callback)
    assert (run.outcome, run.error, run.traceback) == ("failed", error, "")


def test_a_process_that_closes_every_descriptor_is_a_failure_that_names_it(bench: Bench) -> None:
    run = bench.run("closes_everything")
    assert (run.outcome, run.error) == (
        "failed",
        "RunLostError: the callback closed descriptors that are not its own:"
        " how it ended is not known",
    )
    assert bench.noted("went on") == ["went on with 0 bytes in 260 files"]


@pytest.mark.slow
def test_a_process_that_closed_every_descriptor_is_ended_all_the_same(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.2)
    assert bench.run_beyond("closes_everything_and_waits").outcome == "timed_out"


def test_a_run_cannot_leave_the_group_that_is_ended_with_it(bench: Bench) -> None:
    assert bench.run("leads_a_session").result is True


def test_a_memory_limit_is_a_failure_of_the_run_only(bench: Bench) -> None:
    run = bench.run("eats_memory", options={"memory_limit": 2**30})
    assert (run.outcome, run.error) == ("failed", "MemoryError")


def test_a_limit_of_the_processor_ends_the_run_and_is_named(bench: Bench) -> None:
    run = bench.run("eats_time", options={"cpu_limit": 1})
    assert (run.outcome, run.error) == (
        "failed",
        "RunLostError: ended by SIGXCPU: it used the 1 s of the processor that it may",
    )


def test_the_end_of_what_it_prints_is_kept(bench: Bench) -> None:
    run = bench.run("prints")
    assert run.outcome == "succeeded"
    assert run.output.endswith("x" * 1000 + "the end\n")
    assert 60 * 1024 < len(run.output) < 68 * 1024


@pytest.mark.slow
@pytest.mark.alike
def test_what_was_logged_and_printed_outlives_a_process_that_is_killed(
    own_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_bench.start(own_bench.task("t", "until_stopping"))
    own_bench.noted("began")
    server = _server(own_bench)
    (child,) = _children(server)
    os.kill(child, signal.SIGKILL)
    run = own_bench.ended()
    assert (run.outcome, run.error) == ("failed", "RunLostError: ended by SIGKILL")


@pytest.mark.slow
@pytest.mark.alike
def test_a_signal_to_everything_ends_no_run_and_the_scheduler_tells_it_to_stop(
    own_bench: Bench,
) -> None:
    own_bench.start(own_bench.task("t", "until_stopping"))
    own_bench.noted("began")
    server = _server(own_bench)
    (child,) = _children(server)
    for pid in (server, child):
        os.kill(pid, signal.SIGTERM)
    own_bench.scheduler.request_stop()
    assert own_bench.ended().outcome == "succeeded"
    assert is_running(server)


@pytest.mark.slow
@pytest.mark.alike
def test_a_server_that_died_is_replaced_and_its_runs_are_failures(own_bench: Bench) -> None:
    own_bench.start(own_bench.task("t", "until_stopping"))
    own_bench.noted("began")
    first = _server(own_bench)
    (child,) = _children(first)
    os.kill(first, signal.SIGKILL)
    run = own_bench.ended()
    assert (run.outcome, run.error) == (
        "failed",
        "RunLostError: the process that forks runs has ended",
    )
    assert eventually(lambda: not is_running(child))
    TaskRun.objects.all().delete()
    own_bench.scheduler.initialize([own_bench.task("u", "gives_value", 1, 2)])
    own_bench.ask("u")
    assert own_bench.ended("u").result == {"sum": 3, "of": [1, 2]}
    assert _server(own_bench) != first


@pytest.mark.slow
@pytest.mark.alike
@pytest.mark.parametrize("killed", ["server", "process"])
def test_what_a_run_started_neither_outlives_it_nor_keeps_it_going(
    own_bench: Bench, killed: str
) -> None:
    own_bench.start(own_bench.task("t", "leaves_a_fork_behind"))
    child, grandchild = map(int, own_bench.noted("began")[0].split()[1:])
    os.kill(_server(own_bench) if killed == "server" else child, signal.SIGKILL)
    assert own_bench.ended().outcome == "failed"
    assert eventually(lambda: not is_running(child) and not is_running(grandchild))


@pytest.mark.slow
@pytest.mark.alike
def test_runs_end_although_their_server_hangs(
    own_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.5)
    deaf = own_bench.task("t", "is_deaf", timeout=5)
    own_bench.start(deaf, own_bench.task("u", "until_stopping"))
    pids = list(map(int, own_bench.noted("began ")[0].split()[1:]))
    own_bench.noted("began", 2)
    os.kill(_server(own_bench), signal.SIGSTOP)
    assert own_bench.ended("t").outcome == "timed_out"
    for pid in pids:
        assert eventually(lambda pid=pid: not is_running(pid))
    own_bench.close()
    assert own_bench.ended("u").outcome == "succeeded"


@pytest.mark.slow
@pytest.mark.alike
def test_a_server_that_begins_no_run_in_time_is_replaced(
    own_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_bench.start(own_bench.task("t", "until_stopping"), own_bench.task("u", "notes", "called"))
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
def test_the_next_occurrence_ends_a_run_that_gives_way(bench: Bench) -> None:
    task = bench.task("t", "until_stopping", overlap_policy="cancel_previous")
    bench.scheduler.initialize([{**task, "cron": "* * * * * *", "dialect": "ojs"}])
    ended = TaskRun.objects.filter(error="cancelled", traceback__contains="in until_stopping")
    assert eventually(ended.first).outcome == "cancelled"


@pytest.mark.slow
def test_nothing_is_left_behind(own_bench: Bench) -> None:
    assert own_bench.run("ok").outcome == "succeeded"
    server, before = _server(own_bench), descriptors()
    theirs = len(os.listdir(f"/proc/{server}/fd"))
    names = [f"u{n}" for n in range(20)]
    own_bench.scheduler.initialize([own_bench.task(name, "ok") for name in names])
    own_bench.ask(*names)
    own_bench.heard.wait_for("TaskRunCompleted", 1 + len(names))
    assert eventually(lambda: _children(server) == [])
    # The server lets go of a child's pipes right after the child itself.
    assert eventually(lambda: len(os.listdir(f"/proc/{server}/fd")) == theirs)
    own_bench.scheduler.stop()
    assert not is_running(server)
    assert descriptors() <= before


@pytest.mark.slow
def test_the_runs_of_a_scheduler_that_is_killed_end_with_it(
    make_bench: Callable[..., Bench], start: Callable[..., Process], notes: Path
) -> None:
    bench = make_bench("process")
    process = start(DJANGO_SETTINGS_MODULE="tests.runtime.runners.process_settings")
    eventually(lambda: TaskRun.objects.filter(outcome="running").exists() or notes.read_text())
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


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
