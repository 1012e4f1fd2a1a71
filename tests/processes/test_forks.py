"""Children that a callback forks have default signals and no descriptor of the scheduler.

Processes of runs are forked by a server that ran the scheduler's own entry point.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ..process import Process
from ..timeouts import TIMEOUT
from .conftest import Launch, RunNow, wait_until
from .ports import free_port

pytestmark = [
    pytest.mark.alike,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]


def _noted(notes: Path, word: str, count: int) -> list[str]:
    """Wait for lines that callbacks wrote, and return them."""

    def lines() -> list[str]:
        return [each for each in notes.read_text().splitlines() if each.startswith(word)]

    wait_until(lambda: len(lines()) >= count, word)
    return lines()


@pytest.mark.nightly
@pytest.mark.parametrize("runner", ["thread", "process"])
def test_a_thousand_pools_of_multiprocessing_end(
    launch: Launch, run_now: RunNow, notes: Path, runner: str
) -> None:
    process = launch(given={"pools": 1000})
    run_now(f"make-pools-{runner}")
    _noted(notes, "pools ended", 1)
    process.wait_for("TaskRunCompleted")


def test_children_of_callbacks_handle_signals_and_have_no_descriptor_of_ours(
    launch: Launch, run_now: RunNow, notes: Path
) -> None:
    process = launch("--health-port", "0", given={"pools": 20})
    callbacks = ("make-pools", "end-children", "show-descriptors-of-a-child")
    run_now(*[f"{name}-{runner}" for name in callbacks for runner in ("thread", "process")])
    process.wait_for("TaskRunCompleted", 6)
    assert _noted(notes, "pools", 2) == ["pools ended"] * 2
    assert _noted(notes, "multiprocessing", 2) == ["multiprocessing -15"] * 2
    assert _noted(notes, "fork", 2) == ["fork -15"] * 2
    assert _noted(notes, "high", 2) == ["high 0"] * 2
    assert "SchedulerStopRequested" not in process.output


def test_a_worker_that_is_left_behind_keeps_no_port(
    launch: Launch, run_now: RunNow, notes: Path
) -> None:
    ports = [free_port(), free_port()]
    arguments = ("--health-port", str(ports[0]), "--metrics-port", str(ports[1]))
    process = launch(*arguments)
    run_now("leave-a-worker-thread")
    [line] = _noted(notes, "worker", 1)
    try:
        process.wait_for("TaskRunCompleted")
        process.signal(signal.SIGKILL)
        # The worker keeps the output open, so that its end does not come.
        process.child.wait(TIMEOUT)
        launch(*arguments)
    finally:
        with suppress(ProcessLookupError):
            os.kill(int(line.split()[1]), signal.SIGKILL)


# --- the entry point ---

_MANAGE = Path(__file__).with_name("manage_with_shim.py")
_GIVEN = {
    "python": [sys.executable, str(_MANAGE)],
    "DJANGO_SETTINGS_MODULE": "tests.processes.settings",
    "DDC_TEST_SHIM": "1",
    "PYTHONPATH": str(Path(__file__).parents[2]),
}


def test_a_run_in_a_process_has_what_manage_py_has_prepared(
    start: Callable[..., Process], run_now: RunNow
) -> None:
    process = start(**_GIVEN).up()
    run_now("end-children-process")
    process.wait_for("TaskRunCompleted")


def test_an_error_of_the_entry_point_is_that_of_the_run(
    start: Callable[..., Process], run_now: RunNow
) -> None:
    process = start(**_GIVEN, DDC_TEST_BROKEN_ENTRY="1").up()
    run_now("end-children-process")
    process.wait_for("TaskRunFailed")
    process.wait_for("2 times before it began: LookupError: the entry point is broken")
    process.wait_for("Traceback (most recent call last):")
