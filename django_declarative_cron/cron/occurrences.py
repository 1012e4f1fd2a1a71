"""From civil minutes to instants: the only place where daylight saving is decided.

==========================  ==========================================================
the local minute            its occurrence
==========================  ==========================================================
exists once                 the instant it begins
is jumped over (a gap)      ``gap="skip"``: none. ``gap="shift"``: the first minute after
                            the gap, one for the whole gap, and none besides when that
                            minute is named itself
happens twice (a fold)      ``fold="first"``: the first pass. ``fold="both"``: each pass
                            is an occurrence of its own
==========================  ==========================================================

A gap or fold may be of any size: half an hour (Lord Howe), at midnight (Santiago), a whole
day (Apia 2011), or of odd seconds where a zone leaves local mean time. Within a span of
constant offset (see ``timeline``) an instant is a local second minus the offset, so each
function walks spans and asks the civil schedule for local minutes; the table above defines the
handling between two spans.

With a field for seconds, read "second" for "minute" in all of this.

Source: docs/semantics.md, "Daylight saving time"; 001 Cron Language Specification.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .civil import CivilSchedule
from .timeline import FIRST_SECOND, LAST_SECOND, SECONDS_PER_DAY, Span, Timeline

# Every expression names a date within forty years (a fifth Friday in February across 2100). One
# that finds no occurrence in fifty falls into a gap each time.
HORIZON = 18_263 * SECONDS_PER_DAY


class Rules(NamedTuple):
    """The treatment of lost and of repeated local minutes."""

    shift: bool
    both: bool

    def begin(self, span: Span) -> int:
        """Return the first second of a span that can hold an occurrence."""
        return span.start if self.both else span.first_pass


def next_occurrence(civil: CivilSchedule, timeline: Timeline, low: int, rules: Rules) -> int | None:
    """Return the first occurrence at second ``low`` or later, None without one in 50 years."""
    limit = min(low + HORIZON, LAST_SECOND)
    span = timeline.at(low)
    if rules.shift and low <= _resumption(civil, span) and first_lost(civil, span) is not None:
        return _resumption(civil, span)
    local = civil.next_from(max(low, rules.begin(span)) + span.offset)
    while local is not None and span.start <= limit:
        occurrence = local - span.offset
        if occurrence < span.end:
            return occurrence if occurrence <= limit else None
        span = timeline.at(span.end)
        lost = local < span.local_start
        if lost and rules.shift:
            return _resumption(civil, span)
        if lost or (rules.both and span.opens_fold):
            local = civil.next_from(span.local_start)
    return None


def latest_occurrence(
    civil: CivilSchedule, timeline: Timeline, high: int, rules: Rules
) -> int | None:
    """Return the last occurrence at second ``high`` or earlier, None without one in 50 years."""
    limit = max(high - HORIZON, FIRST_SECOND)
    span = timeline.at(high)
    local = civil.last_until(high + span.offset)
    while local is not None and span.end > limit:
        occurrence = local - span.offset
        if occurrence >= rules.begin(span):
            return occurrence if occurrence >= limit else None
        lost = local >= span.local_before
        if lost and rules.shift and _resumption(civil, span) <= high:
            return _resumption(civil, span)
        if lost or (span.opens_fold and (rules.both or high < span.first_pass)):
            local = civil.last_until(span.local_before - 1)
        span = timeline.at(span.start - 1)
    return None


def count_occurrences(
    civil: CivilSchedule, timeline: Timeline, low: int, high: int, rules: Rules
) -> int:
    """Count the occurrences from second ``low`` to ``high``, both included."""
    total = 0
    for span in timeline.spans(low, high):
        begin, end = max(low, rules.begin(span)), min(high + 1, span.end)
        if begin < end:
            total += civil.count(begin + span.offset, end + span.offset)
        moved = _resumption(civil, span)
        if rules.shift and low <= moved <= high and first_lost(civil, span) is not None:
            total += not civil.names(moved + span.offset)
    return total


def losing_spans(
    civil: CivilSchedule, timeline: Timeline, low: int, high: int
) -> Iterator[tuple[Span, int]]:
    """Yield the spans from ``low`` to ``high`` that begin with a loss, and its first minute."""
    for span in timeline.spans(low, high):
        if span.start >= low and (first := first_lost(civil, span)) is not None:
            yield span, first


def first_lost(civil: CivilSchedule, span: Span) -> int | None:
    """Return the first named minute in the gap a span opens with, None if none is lost."""
    if not span.opens_gap:
        return None
    first = civil.next_from(span.local_before)
    return first if first is not None and first < span.local_start else None


def _resumption(civil: CivilSchedule, span: Span) -> int:
    """Return the second at which the first local time after a gap begins that could be named."""
    # Offsets of the past have seconds, so a span may begin within a local minute.
    return span.start + -span.local_start % civil.unit
