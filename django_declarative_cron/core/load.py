"""How many occurrences fall into each minute of the coming hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache

from .schedule import Schedule

MINUTES = 60
_MINUTE = timedelta(minutes=1)


def load(schedules: Iterable[tuple[Schedule, int]], now: datetime) -> list[int]:
    """Count the occurrences of each of the 60 minutes that follow this one."""
    start = now.replace(second=0, microsecond=0) + _MINUTE
    found: Counter[int] = Counter()
    for schedule, number in schedules:
        # What counts from an anchor, or lacks something, differs for two tasks of the same text.
        is_shared = schedule.expression.every is None and schedule.is_complete
        for minute in _minutes(schedule, start) if is_shared else _walk(schedule, start):
            found[minute] += number
    return [found[minute] for minute in range(MINUTES)]


@lru_cache(maxsize=4096)
def _minutes(schedule: Schedule, start: datetime) -> tuple[int, ...]:
    return _walk(schedule, start)


def _walk(schedule: Schedule, start: datetime) -> tuple[int, ...]:
    minutes: list[int] = []
    end, instant = start + MINUTES * _MINUTE, start - timedelta(microseconds=1)
    while True:
        found = schedule.next_after(instant)
        if found is None or found >= end:
            return tuple(minutes)
        minute = (found - start) // _MINUTE
        minutes.append(minute)
        # Several in one minute are one load of one task.
        instant = start + (minute + 1) * _MINUTE - timedelta(microseconds=1)
