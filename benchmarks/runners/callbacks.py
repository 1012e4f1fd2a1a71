"""What the runs of this part do, and those of ``benchmarks/engine.py``."""

from __future__ import annotations

import os
import socket
import time

from django_declarative_cron import Run


def tells_when() -> float:
    """Give the monotonic second at which it was called."""
    return time.monotonic()


async def tells_when_asynchronously() -> float:
    """Give the monotonic second at which it was called."""
    return time.monotonic()


def spins() -> None:
    """Never return."""
    while True:
        pass


def reads() -> None:
    """Wait for what never comes."""
    mine, _theirs = socket.socketpair()
    mine.recv(1)


def notes(run: Run) -> None:
    """Write down when it begins and ends, each in one piece."""
    _note(f"began {run.task_name} {os.getpid()} {time.monotonic()}")
    time.sleep(0.005)
    _note(f"ended {run.task_name} {os.getpid()} {time.monotonic()}")


def _note(line: str) -> None:
    with open(os.environ["BENCHMARK_NOTES"], "a") as file:
        file.write(line + "\n")
