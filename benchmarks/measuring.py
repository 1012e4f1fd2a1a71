"""Tools of the functions that measure: the same tasks, clock and counter for every contender."""

from __future__ import annotations

import functools
import gc
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

NEVER = "0 0 29 2 *"
EVERY_MINUTE = "* * * * *"


def nothing(*args: object, **kwargs: object) -> None:
    """Do nothing; the callback of every contender."""


NOTHING = f"{__name__}.nothing"


def names(size: int) -> list[str]:
    """Return the names of so many tasks."""
    return [f"task-{number:07}" for number in range(size)]


def crons(size: int) -> list[str]:
    """Return the schedules of so many tasks, 1,440 of them different; none is due this week."""
    day = (time.gmtime().tm_mday + 13) % 28 + 1
    return [f"{number % 60} {number // 60 % 24} {day} * *" for number in range(size)]


def due_crons(size: int, due: int) -> list[str]:
    """Return schedules of which the first ones are due every minute and the others never."""
    return [EVERY_MINUTE] * due + [NEVER] * (size - due)


# --- what a piece of work costs ---


@dataclass(frozen=True)
class Cost:
    """The cost of a piece of work in milliseconds and SQL statements."""

    milliseconds: float
    statements: int


_sent = 0


def count_statements() -> None:
    """Count every statement that psycopg sends from now on, whichever library asks for it."""

    def count(execute: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(execute)
        def counted(*args: Any, **kwargs: Any) -> Any:
            global _sent
            _sent += 1
            return execute(*args, **kwargs)

        return counted

    for cursor in (psycopg.Cursor, psycopg.AsyncCursor):
        for name in ("execute", "executemany"):
            setattr(cursor, name, count(getattr(cursor, name)))


class Stopwatch:
    """Measure the cost of a piece of work from its start to any moment."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Start again."""
        self._sent, self._began = _sent, time.perf_counter()

    def read(self) -> Cost:
        """Return the cost since the start."""
        milliseconds = (time.perf_counter() - self._began) * 1000
        return Cost(milliseconds, _sent - self._sent)


def cost(work: Callable[[], object]) -> Cost:
    """Do a piece of work and return its cost, without that of older garbage."""
    gc.collect()
    watch = Stopwatch()
    work()
    return watch.read()


def median_of(costs: Sequence[Cost]) -> Cost:
    """Return the median of costs."""
    return Cost(
        median(each.milliseconds for each in costs),
        int(median(each.statements for each in costs)),
    )


def median_cost(
    work: Callable[[], object],
    times: int,
    *,
    before: Callable[[], object] = lambda: None,
    seconds: float = 15.0,
) -> Cost:
    """Return the median cost of a piece of work, done less often if it is slow.

    Args:
        work: is measured.
        times: number of measurements.
        before: runs before each measurement.
        seconds: no measurement begins after these.
    """
    end, found = time.monotonic() + seconds, list[Cost]()
    while len(found) < times and (not found or time.monotonic() < end):
        before()
        found.append(cost(work))
    return median_of(found)


def idle_cost(work: Callable[[], object]) -> Cost:
    """Return the median cost of a pass that finds nothing.

    Passes are 10 ms apart: a loop sleeps between them, and the processor's caches grow cold.
    """
    for _ in range(10):
        work()
    return median_cost(work, 50, before=lambda: time.sleep(0.01), seconds=3.0)


def forget() -> None:
    """Empty the caches of functions, as in a process that has just started."""
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper):
            each.cache_clear()


def resident() -> float:
    """Return the megabytes of this process that are in memory."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def wait_until(is_over: Callable[[], bool], seconds: float, step: float = 0.05) -> bool:
    """Wait for a condition, and return whether it holds."""
    deadline = time.monotonic() + seconds
    while not is_over():
        if time.monotonic() > deadline:
            return False
        time.sleep(step)
    return True
