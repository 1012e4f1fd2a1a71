"""Which instants an expression names, by trying every local minute of every day that it names.

Slow and plain on purpose, and none of the product's code. Where clocks change: a local minute
that does not exist is no occurrence, and of one that exists twice the first is.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def walk(
    text: str, zone: ZoneInfo, start: datetime, steps: int, *, backward: bool = False
) -> list[datetime]:
    """Give the occurrences after an instant, or before it.

    Args:
        text: five fields of numbers, lists and ranges.
        zone: of local times.
        start: aware; not among the answers.
        steps: how many.
        backward: before it, the latest first.
    """
    wanted = (
        each
        for each in _instants(text, zone, start, backward=backward)
        if (each < start if backward else each > start)
    )
    return list(islice(wanted, steps))


def _instants(text: str, zone: ZoneInfo, start: datetime, *, backward: bool) -> Iterator[datetime]:
    minutes, hours, *_ = fields = [
        _numbers(field, *bounds) for field, bounds in zip(text.split(), _BOUNDS, strict=True)
    ]
    stars = [field == "*" for field in text.split()]
    step = timedelta(days=-1 if backward else 1)
    day = start.astimezone(zone).date() - step
    times = [(hour, minute) for hour in sorted(hours) for minute in sorted(minutes)]
    while True:
        if _names(day, fields, stars):
            found = sorted(_first_passes(day, times, zone), reverse=backward)
            yield from found
        day += step


def _first_passes(day: date, times: list[tuple[int, int]], zone: ZoneInfo) -> Iterator[datetime]:
    for hour, minute in times:
        local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
        instant = local.astimezone(UTC)
        if instant.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
            yield instant


def _names(day: date, fields: list[set[int]], stars: list[bool]) -> bool:
    _, _, days, months, weekdays = fields
    by_day, by_weekday = day.day in days, day.isoweekday() % 7 in weekdays
    either = not stars[2] and not stars[4]
    return day.month in months and (by_day or by_weekday if either else by_day and by_weekday)


def _numbers(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for item in field.split(","):
        first, _, last = f"{low}-{high}".partition("-") if item == "*" else item.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
