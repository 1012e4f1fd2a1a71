"""Children that a callback forks: default signals, and no descriptor of the scheduler."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ..timeouts import TIMEOUT
from .conftest import Launch, wait_until
from .ports import free_port

RunNow = Callable[..., None]

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
    process = launch(pools=1000)
    run_now(f"make-pools-{runner}")
    _noted(notes, "pools ended", 1)
    process.wait_for("TaskRunCompleted")


def test_children_of_callbacks_handle_signals_and_have_no_descriptor_of_ours(
    launch: Launch, run_now: RunNow, notes: Path
) -> None:
    process = launch(pools=20, arguments=("--health-port", "0"))
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
    process = launch(arguments=arguments)
    run_now("leave-a-worker-thread")
    [line] = _noted(notes, "worker", 1)
    try:
        process.wait_for("TaskRunCompleted")
        process.signal(signal.SIGKILL)
        # The worker keeps the output open, so that its end does not come.
        process.child.wait(TIMEOUT)
        launch(arguments=arguments)
    finally:
        with suppress(ProcessLookupError):
            os.kill(int(line.split()[1]), signal.SIGKILL)
