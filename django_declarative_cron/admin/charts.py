"""Charts as SVG, from values: no clock, no database, no inline style that a strict CSP refuses.

Height or shape repeat what colour says, and a table stands beside each chart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

HEIGHT = 60
_BAR, _GAP = 6, 2

STRIP = 20
"""Number of runs in a strip."""

LANE_WIDTH, LANE_HEIGHT = 1440, 24
_CELL, _TICK = 4, 2

KINDS = (
    *("", "skipped", "missed", "succeeded", "cancelled", "waiting"),
    *("running", "interrupted", "timed_out", "failed"),
)
"""Where several runs share a cell of a lane, the one that comes last here is drawn."""

_RANKS = {kind: rank for rank, kind in enumerate(KINDS)}
_LANE_HEIGHTS = {"skipped": 6, "missed": 6, "succeeded": 14, "waiting": 8}
_STRIP_HEIGHTS = {"succeeded": 9, "skipped": 4, "missed": 4, "waiting": 5}

Place = tuple[float, float, float, float]


class Column(NamedTuple):
    """A column of a chart: its value, the kind that gives its class, and its tooltip."""

    value: float
    kind: str
    title: str = ""


class Window(NamedTuple):
    """The span of time that a lane shows."""

    start: datetime
    end: datetime

    def place(self, instant: datetime) -> float:
        """Return the coordinate of an instant, at the edge for one outside."""
        share = (instant - self.start) / (self.end - self.start)
        return min(max(share, 0.0), 1.0) * LANE_WIDTH

    def shows(self, instant: datetime) -> bool:
        return self.start <= instant < self.end

    def hours(self) -> list[datetime]:
        """Return eight instants, evenly spread, to be named below the lanes."""
        step = (self.end - self.start) / 8
        return [self.start + step * index for index in range(8)]


def window_around(now: datetime, before: timedelta, after: timedelta) -> Window:
    """Return the window around an instant, from a whole hour of UTC on."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    return Window(hour - before, hour + after)


class Bar(NamedTuple):
    """A run in a lane; its kind is one of ``KINDS``."""

    start: datetime
    end: datetime
    kind: str


class Mark(NamedTuple):
    """A clock change in a lane."""

    at: datetime
    title: str


def columns(values: Sequence[Column], label: str) -> SafeString:
    highest = max((column.value for column in values), default=0.0) or 1.0
    width = max(len(values) * (_BAR + _GAP), _BAR)
    parts = [_rect("lane-floor", (0, HEIGHT - 1, width, 1))]
    for index, column in enumerate(values):
        height = column.value / highest * (HEIGHT - 6)
        height = max(height, 2.0) if column.value > 0 else 1.0
        place = (index * (_BAR + _GAP), HEIGHT - 1 - height, _BAR, height)
        parts.append(_rect(f"bar ddc-bar-{column.kind}", place, column.title))
    return _drawing("columns", width, HEIGHT, label, parts)


def strip(kinds: Sequence[str], label: str) -> SafeString:
    """Draw the newest outcomes, the newest at the right."""
    width, height, kinds = STRIP * 5, 16, kinds[-STRIP:]
    places: dict[str, list[Place]] = defaultdict(list)
    for index, kind in enumerate(kinds, start=STRIP - len(kinds)):
        tall = _STRIP_HEIGHTS.get(kind, 15)
        places[kind].append((index * 5, height - tall, 4, tall))
    parts = [_blocks(f"bar ddc-bar-{kind}", found) for kind, found in places.items()]
    return _drawing("strip", width, height, label, parts)


def lane(
    window: Window,
    bars: Iterable[Bar],
    planned: Iterable[datetime],
    changes: Iterable[Mark],
    now: datetime,
    label: str,
) -> SafeString:
    """Draw the day of one task; the number of parts is bounded by the width."""
    parts = [_rect("lane-floor", (0, LANE_HEIGHT - 2, LANE_WIDTH, 1))]
    parts += _bars(_cells(window, bars))
    ticks = sorted({int(window.place(at)) // _CELL for at in planned if window.shows(at)})
    parts.append(_blocks("planned", ((tick * _CELL, LANE_HEIGHT - 9, _TICK, 7) for tick in ticks)))
    parts += [
        _line("clock-change", window.place(mark.at), mark.title)
        for mark in changes
        if window.shows(mark.at)
    ]
    if window.shows(now):
        parts.append(_line("now", window.place(now)))
    return _drawing("lane", LANE_WIDTH, LANE_HEIGHT, label, parts)


def _cells(window: Window, bars: Iterable[Bar]) -> list[int]:
    cells = [0] * (LANE_WIDTH // _CELL)
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
    places: dict[str, list[Place]] = defaultdict(list)
    begin = 0
    for rank, same in groupby(cells):
        length = sum(1 for _cell in same)
        if rank:
            height = _LANE_HEIGHTS.get(KINDS[rank], 20)
            place = (begin * _CELL, LANE_HEIGHT - 2 - height, length * _CELL, height)
            places[KINDS[rank]].append(place)
        begin += length
    for kind, found in places.items():
        yield _blocks(f"bar ddc-bar-{kind}", found)


def _drawing(
    kind: str, width: int, height: int, label: str, parts: Iterable[SafeString]
) -> SafeString:
    return format_html(
        '<svg class="ddc-chart ddc-{}" viewBox="0 0 {} {}" preserveAspectRatio="none"'
        ' role="img" aria-label="{}" focusable="false">{}</svg>',
        kind,
        width,
        height,
        label,
        SafeString("".join(parts)),
    )


def _rect(kind: str, place: Place, title: str = "") -> SafeString:
    # A page has thousands of these, so only the class and the title are escaped.
    x, y, width, height = map(number, place)
    return SafeString(
        f'<rect class="{_class(kind)}" x="{x}" y="{y}" width="{width}"'
        f' height="{height}">{_title(title)}</rect>'
    )


def _blocks(kind: str, places: Iterable[Place]) -> SafeString:
    """Return rectangles of one kind as one element."""
    outline = "".join(
        f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h-{number(width)}z"
        for x, y, width, height in places
    )
    return SafeString(f'<path class="{_class(kind)}" d="{outline}"/>' if outline else "")


def _line(kind: str, x: float, title: str = "") -> SafeString:
    return format_html(
        '<line class="ddc-{}" x1="{}" y1="0" x2="{}" y2="{}"'
        ' vector-effect="non-scaling-stroke">{}</line>',
        kind,
        number(x),
        number(x),
        LANE_HEIGHT,
        _title(title),
    )


def number(value: float) -> str:
    """Return a coordinate, written alike in every language."""
    return f"{value + 0:.2f}".rstrip("0").rstrip(".")


def _class(kind: str) -> str:
    return escape(f"ddc-{kind.replace('_', '-')}")


def _title(text: str) -> SafeString:
    return format_html("<title>{}</title>", text) if text else SafeString("")
