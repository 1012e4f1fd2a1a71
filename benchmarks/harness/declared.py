"""The tasks that everybody is given: as many as there shall be, and none of them due soon."""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime


def names(size: int) -> list[str]:
    """Give the names of so many tasks.

    Args:
        size: how many.
    """
    return [f"task-{number:06}" for number in range(size)]


def crons(size: int) -> list[str]:
    """Give schedules of which none comes within a week: a minute and hour of a day of the month.

    Args:
        size: how many; there are 1440 different ones.
    """
    day = (datetime.now(UTC).day + 13) % 28 + 1
    return [f"{number % 60} {number // 60 % 24} {day} * *" for number in range(size)]


def forget() -> None:
    """Empty every cache of functions, as a new process has none filled."""
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper):
            each.cache_clear()


@contextmanager
def as_new() -> Iterator[None]:
    """Measure as in a process that has just begun: nothing is cached, and there is no garbage."""
    forget()
    gc.collect()
    yield
