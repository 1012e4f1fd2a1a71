"""A day of one task as a lane: what ran, what is planned, what the clocks do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from django.utils.safestring import SafeString

from . import svg

WIDTH, HEIGHT = 1440, 24
_CELL = 4
_TICK = 2

KINDS = (
    "",
    "skipped",
    "missed",
    "succeeded",
    "cancelled",
    "waiting",
    "running",
    "interrupted",
    "timed_out",
    "failed",
)
"""Where several runs share a place, the one that stands last here is shown."""

_RANKS = {kind: rank for rank, kind in enumerate(KINDS)}
_HEIGHTS = {"skipped": 6, "missed": 6, "succeeded": 14, "waiting": 8}
_FULL = 20


@dataclass(frozen=True, slots=True)
class Window:
    """The span of time that a lane shows.

    Args:
        start: its left side.
        end: its right side.
    """

    start: datetime
    end: datetime

    def place(self, instant: datetime) -> float:
        """Return the coordinate of an instant, at the edge for one outside."""
        share = (instant - self.start) / (self.end - self.start)
        return min(max(share, 0.0), 1.0) * WIDTH

    def shows(self, instant: datetime) -> bool:
        """Return whether an instant lies inside."""
        return self.start <= instant < self.end


class Bar(NamedTuple):
    """Something that took place.

    Args:
        start: when it began.
        end: when it ended, at least its start.
        kind: one of ``KINDS``.
    """

    start: datetime
    end: datetime
    kind: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A change of the clock.

    Args:
        at: the instant.
        title: what happens.
    """

    at: datetime
    title: str


def lane(
    window: Window,
    bars: Iterable[Bar],
    planned: Iterable[datetime],
    changes: Iterable[Mark],
    now: datetime,
    label: str,
) -> SafeString:
    """Draw one task's lane; the number of its parts is bounded by its width."""
    parts: list[SafeString] = [svg.rect("lane-floor", 0, HEIGHT - 2, WIDTH, 1)]
    parts += _bars(_cells(window, bars))
    parts.append(_ticks(window, planned))
    parts += [
        svg.line("clock-change", (x, 0), (x, HEIGHT), mark.title)
        for mark in changes
        if window.shows(mark.at)
        for x in (window.place(mark.at),)
    ]
    if window.shows(now):
        parts.append(svg.line("now", (window.place(now), 0), (window.place(now), HEIGHT)))
    return svg.drawing("lane", WIDTH, HEIGHT, label, parts)


def _cells(window: Window, bars: Iterable[Bar]) -> list[int]:
    cells = [0] * (WIDTH // _CELL)
    start, width = window.start, (window.end - window.start) / len(cells)
    for began, ended, kind in bars:
        if ended < start or began >= window.end:
            continue
        rank = _RANKS.get(kind, 1)
        first = max((began - start) // width, 0)
        last = min((ended - start) // width, len(cells) - 1)
        for index in range(first, last + 1):
            cells[index] = max(cells[index], rank)
    return cells


def _bars(cells: Sequence[int]) -> Iterator[SafeString]:
    places: dict[str, list[tuple[float, float, float, float]]] = defaultdict(list)
    begin = 0
    for rank, same in groupby(cells):
        length = sum(1 for _cell in same)
        if rank:
            kind = KINDS[rank]
            height = _HEIGHTS.get(kind, _FULL)
            place = (begin * _CELL, HEIGHT - 2 - height, length * _CELL, height)
            places[kind].append(place)
        begin += length
    for kind, found in places.items():
        yield svg.blocks(f"bar ddc-bar-{kind}", found)


def _ticks(window: Window, planned: Iterable[datetime]) -> SafeString:
    places = sorted({int(window.place(at)) // _CELL for at in planned if window.shows(at)})
    return svg.blocks("planned", ((place * _CELL, HEIGHT - 9, _TICK, 7) for place in places))


def hours(window: Window) -> list[datetime]:
    """Return the instants to be named below the lanes, evenly spread."""
    step = (window.end - window.start) / 8
    return [window.start + step * index for index in range(8)]


def window_around(now: datetime, before: timedelta, after: timedelta) -> Window:
    """Return the window around an instant that begins with a whole hour of UTC."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    return Window(hour - before, hour + after)
