"""Charts of one task: how long it took, how late it was, how it ended; and what is ahead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from django.utils.safestring import SafeString

from . import svg
from .timeline import KINDS

HEIGHT = 60
_BAR, _GAP = 6, 2
_STRIP = 20
_NEAR = 4


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a chart.

    Args:
        value: its height, at least 0.
        kind: of its class, such as an outcome.
        title: for whoever points at it.
    """

    value: float
    kind: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Level:
    """A value that is marked across a chart.

    Args:
        value: at least 0.
        kind: of its class: ``level`` for what is usual, ``limit`` for what ends a run.
        title: for whoever points at it.
    """

    value: float
    kind: str
    title: str


def columns(columns: Sequence[Column], label: str, levels: Sequence[Level] = ()) -> SafeString:
    """Draw columns side by side, the highest as high as the picture.

    A level far above the columns would flatten them: it lies at the upper edge instead.
    """
    highest = max((column.value for column in columns), default=0.0) or 1.0
    near = [level.value for level in levels if level.value <= highest * _NEAR]
    highest = max(highest, *near) if near else highest
    width = max(len(columns) * (_BAR + _GAP), _BAR)
    parts: list[SafeString] = [svg.rect("lane-floor", 0, HEIGHT - 1, width, 1)]
    for index, column in enumerate(columns):
        height = column.value / highest * (HEIGHT - 6)
        height = max(height, 2.0) if column.value > 0 else 1.0
        kind = f"bar ddc-bar-{column.kind}"
        place = index * (_BAR + _GAP)
        parts.append(svg.rect(kind, place, HEIGHT - 1 - height, _BAR, height, column.title))
    for level in levels:
        y = max(HEIGHT - 1 - level.value / highest * (HEIGHT - 6), 1.0)
        parts.append(svg.line(level.kind, (0, y), (width, y), level.title))
    return svg.drawing("columns", width, HEIGHT, label, parts)


def stacked(days: Sequence[dict[str, int]], label: str) -> SafeString:
    """Draw how the runs of each day ended, the good at the bottom."""
    highest = max((sum(day.values()) for day in days), default=0) or 1
    width = max(len(days) * (_BAR + _GAP), _BAR)
    parts: list[SafeString] = [svg.rect("lane-floor", 0, HEIGHT - 1, width, 1)]
    for index, day in enumerate(days):
        parts += _stack(day, index * (_BAR + _GAP), (HEIGHT - 4) / highest)
    return svg.drawing("columns", width, HEIGHT, label, parts)


def _stack(day: dict[str, int], x: int, scale: float) -> Iterator[SafeString]:
    y = HEIGHT - 1.0
    for kind in ("succeeded", *(kind for kind in KINDS if kind and kind != "succeeded")):
        number = day.get(kind, 0)
        if number:
            height = number * scale
            y -= height
            yield svg.rect(f"bar ddc-bar-{kind}", x, y, _BAR, height, f"{number}")


def strip(kinds: Sequence[str], label: str) -> SafeString:
    """Draw the newest outcomes, the newest at the right."""
    return _strip(tuple(kinds[-_STRIP:]), label)


@lru_cache(maxsize=1024)
def _strip(kinds: tuple[str, ...], label: str) -> SafeString:
    # Most tasks of a list look alike: nearly all went well.
    width, height = _STRIP * 5, 16
    places: dict[str, list[tuple[float, float, float, float]]] = defaultdict(list)
    for index, kind in enumerate(kinds, start=_STRIP - len(kinds)):
        tall = {"succeeded": 9, "skipped": 4, "missed": 4, "waiting": 5}.get(kind, 15)
        places[kind].append((index * 5, height - tall, 4, tall))
    parts = [svg.blocks(f"bar ddc-bar-{kind}", found) for kind, found in places.items()]
    return svg.drawing("strip", width, height, label, parts)
