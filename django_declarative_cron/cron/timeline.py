"""The wall clock of a time zone, cut into spans of constant offset from UTC.

zoneinfo returns the offset at an instant and lists no transitions, so they are found by
probing and bisection, once per zone and year, and cached.

Seconds in this module and in its users count from ordinal day 0 of the proleptic
Gregorian calendar: ``second // SECONDS_PER_DAY`` is the ordinal ``date.fromordinal`` takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

SECONDS_PER_DAY = 86_400

FIRST_SECOND = SECONDS_PER_DAY
LAST_SECOND = (datetime.max.toordinal() + 1) * SECONDS_PER_DAY - 1

_FIRST_INSTANT = datetime(1, 1, 1, tzinfo=UTC)

# A block is about a year. Its edges keep two days away from every transition, so nothing that
# depends on one (a repeated hour lasts a day at most) reaches into the next block.
BLOCK = 1 << 25
_CALM = 2 * SECONDS_PER_DAY

# Transitions that follow each other within a probe's step could hide one another. The closest
# pair in the IANA data lies almost four days apart.
PROBE_STEP = 2 * SECONDS_PER_DAY

# Local times next to the limits of datetime cannot be represented, so no probe goes there.
_LOWEST_PROBE = 3 * SECONDS_PER_DAY
_HIGHEST_PROBE = (datetime.max.toordinal() - 2) * SECONDS_PER_DAY


class Span(NamedTuple):
    """A stretch of time in which the wall clock runs evenly.

    Args:
        start: its first second.
        end: the first second after it.
        offset: local time minus UTC, in seconds.
        before: the offset just before ``start``; equal without a transition at ``start``.
        first_pass: until here local times repeat those of the previous span.
    """

    start: int
    end: int
    offset: int
    before: int
    first_pass: int

    @property
    def opens_gap(self) -> bool:
        """Return whether local times were jumped over at the start."""
        return self.offset > self.before

    @property
    def opens_fold(self) -> bool:
        """Return whether local times are repeated from the start."""
        return self.offset < self.before

    @property
    def local_before(self) -> int:
        """Return the local second the wall clock would have shown without the transition."""
        return self.start + self.before

    @property
    def local_start(self) -> int:
        """Return the local second the wall clock shows at the start."""
        return self.start + self.offset


class Timeline:
    """Answer which span an instant lies in.

    Args:
        zone: the time zone.
    """

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._blocks: dict[int, tuple[Span, ...]] = {}

    def at(self, second: int) -> Span:
        """Return the span that contains a second of UTC."""
        index = second // BLOCK
        spans = self._blocks.get(index) or self._build(index)
        if second < spans[0].start:
            spans = self._blocks.get(index - 1) or self._build(index - 1)
        for span in spans[:-1]:
            if second < span.end:
                return span
        return spans[-1]

    def spans(self, low: int, high: int) -> Iterator[Span]:
        """Yield the spans that overlap the seconds from ``low`` to ``high``, both included."""
        while low <= high:
            span = self.at(low)
            yield span
            low = span.end

    def _build(self, index: int) -> tuple[Span, ...]:
        low, high = self._edge(index), self._edge(index + 1)
        spans: list[Span] = []
        start = first_pass = low
        before = offset = self._offset_at(low)
        for second, after in self._transitions(low, high):
            spans.append(Span(start, second, offset, before, first_pass))
            start, before, offset = second, offset, after
            first_pass = start + max(0, before - offset)
        spans.append(Span(start, high, offset, before, first_pass))
        self._blocks[index] = tuple(spans)
        return self._blocks[index]

    def _edge(self, index: int) -> int:
        edge = index * BLOCK
        while self._offset_at(edge - _CALM) != self._offset_at(edge):
            edge += _CALM
        return edge

    def _transitions(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        offset = self._offset_at(low)
        while low < high:
            probe = min(low + PROBE_STEP, high)
            while self._offset_at(probe) != offset:
                low = self._bisect(low, probe, offset)
                offset = self._offset_at(low)
                yield low, offset
            low = probe

    def _bisect(self, low: int, high: int, offset: int) -> int:
        while high - low > 1:
            middle = (low + high) // 2
            if self._offset_at(middle) == offset:
                low = middle
            else:
                high = middle
        return high

    def _offset_at(self, second: int) -> int:
        second = min(max(second, _LOWEST_PROBE), _HIGHEST_PROBE)
        offset = to_instant(second).astimezone(self._zone).utcoffset() or timedelta()
        return offset.days * SECONDS_PER_DAY + offset.seconds


class _FixedTimeline(Timeline):
    def at(self, second: int) -> Span:
        """Return the one span that there is."""
        return self._whole

    def __init__(self, zone: tzinfo) -> None:
        super().__init__(zone)
        offset = self._offset_at(0)
        self._whole = Span(-(1 << 60), 1 << 60, offset, offset, -(1 << 60))


@lru_cache(maxsize=1024)
def timeline_of(zone: tzinfo) -> Timeline:
    """Return the timeline of a zone, the same one each time.

    Raises:
        TypeError: for anything else.
    """
    if not isinstance(zone, ZoneInfo | timezone):
        raise TypeError(f"zone must be a ZoneInfo, got {zone!r}")
    if isinstance(zone, ZoneInfo) and _RELOADED:
        zone = _as_installed(zone)
    # Only a zone without transitions knows its offset when asked about no instant.
    return Timeline(zone) if zone.utcoffset(None) is None else _FixedTimeline(zone)


_RELOADED: set[bool] = set()


def reload_timelines() -> None:
    """Clear the cache of timelines, so that the installed time zone data are read again."""
    ZoneInfo.clear_cache()
    timeline_of.cache_clear()
    _RELOADED.add(True)


def _as_installed(zone: ZoneInfo) -> ZoneInfo:
    try:
        return ZoneInfo(zone.key)
    except (LookupError, OSError, TypeError, ValueError):
        return zone


def to_second(instant: datetime) -> int:
    """Return the second an aware instant lies in.

    Raises:
        ValueError: the instant is naive, or no datetime.
    """
    try:
        elapsed = instant - _FIRST_INSTANT
    except TypeError:
        raise ValueError(f"instant must be an aware datetime, got {instant!r}") from None
    return (elapsed.days + 1) * SECONDS_PER_DAY + elapsed.seconds


def to_instant(second: int) -> datetime:
    """Return a second as an aware UTC datetime."""
    return _FIRST_INSTANT + timedelta(second // SECONDS_PER_DAY - 1, second % SECONDS_PER_DAY)
