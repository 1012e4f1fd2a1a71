"""Process 1 of a container: what it hands on, what it reaps, what it leaves alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from django_declarative_cron.runtime import reaper

from .conftest import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containers run Linux")

# Orphans of its descendants become children of whoever says this, as they do of process 1.
LIKE_PROCESS_1 = """
import ctypes, os, pathlib, signal, subprocess, sys, threading
PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
from django_declarative_cron.runtime import reaper
assert reaper.below_a_reaper()
"""


def begin(environment: dict[str, str], body: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", LIKE_PROCESS_1 + body],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        output, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    return process.returncode, output


ORPHAN = """
orphan = subprocess.run(
    ["sh", "-c", "sleep 0.05 >&- & echo $!; exit 3"], stdout=subprocess.PIPE, text=True
)
assert orphan.returncode == 3
entry = pathlib.Path("/proc", orphan.stdout.strip())
while entry.exists():
    threading.Event().wait(0.01)
mine = subprocess.Popen(["sh", "-c", "exit 7"])
threading.Event().wait(0.05)
print(mine.wait(), flush=True)
sys.exit(5)
"""


def test_orphans_are_reaped_and_no_exit_status_is_taken_from_anybody(
    project_environment: dict[str, str],
) -> None:
    assert end(begin(project_environment, ORPHAN)) == (5, "7\n")


WAITING = """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("here", flush=True)
print(signal.sigwait([signal.SIGTERM]).name, flush=True)
sys.exit(4)
"""


def test_signals_are_handed_on(project_environment: dict[str, str]) -> None:
    process = begin(project_environment, WAITING)
    assert process.stdout is not None and process.stdout.readline() == "here\n"
    process.send_signal(signal.SIGTERM)
    assert end(process) == (4, "SIGTERM\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_end_by_a_signal_is_128_and_its_number(
    project_environment: dict[str, str], number: signal.Signals
) -> None:
    body = f"os.kill(os.getpid(), {int(number)})\nthreading.Event().wait()"
    assert end(begin(project_environment, body)) == (128 + number, "")


LEAVING_SOMEBODY = """
print(subprocess.Popen(["sleep", "0.2"], stdout=subprocess.DEVNULL).pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_scheduler_leaves_has_a_moment_to_end(
    project_environment: dict[str, str],
) -> None:
    """The companion uses it to say that the scheduler is dead."""
    code, output = end(begin(project_environment, LEAVING_SOMEBODY))
    assert code == 128 + signal.SIGKILL
    assert not Path("/proc", output.strip()).exists()


def test_ctrl_c_comes_once(project_environment: dict[str, str]) -> None:
    """A terminal sends it to the whole group of the reaper, of which the child is no part."""
    process = begin(project_environment, "print(os.getpgid(0) == os.getpid(), flush=True)")
    assert end(process) == (0, "True\n")


def test_nobody_steps_aside_who_is_not_process_1() -> None:
    assert not reaper.step_aside()


def test_a_process_with_threads_is_not_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)
    monkeypatch.setattr(reaper, "below_a_reaper", lambda: True)
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    assert not reaper.step_aside()
    ended.set()
    other.join(PATIENCE)


def _may_make_namespaces() -> bool:
    try:
        done = subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not _may_make_namespaces(), reason="needs to make a namespace of processes")
def test_runscheduler_as_process_1_reaps_what_callbacks_leave_and_ends_in_order(
    child_environment: dict[str, str], run_now: Callable[..., None], tmp_path: Path
) -> None:
    """P61."""
    notes = tmp_path / "notes"
    process = subprocess.Popen(
        [
            *("unshare", "--pid", "--fork", "--mount-proc", "--kill-child"),
            *(sys.executable, "-m", "django", "runscheduler"),
        ],
        env={
            **child_environment,
            "DJANGO_SETTINGS_MODULE": "tests.runtime.process_settings",
            "DDC_TEST_NOTES": str(notes),
            "PYTHONUNBUFFERED": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            for line in process.stdout or ():
                if "stops it" in line:
                    run_now("leave-children")
                if "TaskRunCompleted" in line:
                    _signal_process_1(process.pid, signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
    assert notes.read_text() == "own child 7, children of others 0\n"


def _signal_process_1(unshare: int, number: signal.Signals) -> None:
    children = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
    os.kill(int(children[0]), number)
