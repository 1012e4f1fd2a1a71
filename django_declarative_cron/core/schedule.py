"""Schedules: the instants of one expression in one zone, without excluded and skipped ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Protocol, TypeVar
from zoneinfo import ZoneInfo

from ..cron import CronExpression, Fold, Gap, Lost
from ..exceptions import CalendarError, CronCalculationError


class Exclusion(Protocol):
    """Return for days whether a calendar excludes them."""

    def calendar_of(self, day: date) -> str:
        """Return the name of the calendar that excludes a day, empty where none does.

        Raises:
            CalendarError: a calendar does not answer.
        """


class Calendars(Protocol):
    """The calendars that a project has."""

    @property
    def names(self) -> Sequence[str]:
        """Return their names."""

    def exclusion(self, names: Sequence[str]) -> Exclusion:
        """Return the union of some calendars."""


@dataclass(frozen=True, slots=True)
class Excluded:
    """Occurrences of one day that do not run because a calendar excludes it.

    Args:
        first: the first of them.
        last: the last of them.
        count: how many there are.
        calendar: its name.
    """

    first: datetime
    last: datetime
    count: int
    calendar: str


_T = TypeVar("_T")

_AT_ONCE: Final = timedelta(0)
_TICK: Final = timedelta(microseconds=1)
_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)
_LONGEST_EXCLUSION: Final = timedelta(days=3653)
"""A task whose days are all excluded for longer than this is never due."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Answer in UTC instants for one expression in one zone.

    Every answer may raise ``CronCalculationError`` (001 Cron Calculation Errors): rules of
    the installed time zone database that cannot be read, or a fault of ours.

    Args:
        expression: the parsed cron expression.
        zone: where its civil minutes are.
        gap: treatment of a local minute that does not exist.
        fold: which passes of a local minute that happens twice count.
        anchor: the instant from which ``@every`` counts; without it such an expression
            has no occurrences.
        offset: the delay of each occurrence.
        exclusion: the days without occurrences; a calendar that does not answer excludes none.
        omitted: an occurrence that is skipped.
    """

    expression: CronExpression
    zone: ZoneInfo
    gap: Gap = "skip"
    fold: Fold = "first"
    anchor: datetime | None = field(default=None, compare=False)
    offset: timedelta = _AT_ONCE
    exclusion: Exclusion | None = field(default=None, compare=False)
    omitted: datetime | None = field(default=None, compare=False)

    def anchored(self, instant: datetime) -> Schedule:
        """Return the schedule as it counts for a task: ``@every`` from its registration on.

        A late run does not move the later ones (002 Interval Expression).
        """
        return self if self.expression.every is None else replace(self, anchor=instant)

    def omitting(self, occurrence: datetime | None) -> Schedule:
        """Return the schedule without one occurrence."""
        return self if occurrence == self.omitted else replace(self, omitted=occurrence)

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first occurrence strictly after an instant, or ``None``."""
        following = self._next(instant)
        while following is not None and (passed := self._left_out(following)) is not None:
            if following - instant > _LONGEST_EXCLUSION:
                return None
            following = self._next(max(following, passed[1]))
        return following

    def latest_at_or_before(self, instant: datetime) -> datetime | None:
        """Return the newest occurrence not later than an instant, or ``None``."""
        latest = self._latest(instant)
        while latest is not None and (passed := self._left_out(latest)) is not None:
            if instant - latest > _LONGEST_EXCLUSION:
                return None
            latest = self._latest(min(latest, passed[0]) - _TICK)
        return latest

    def in_minute_of(self, instant: datetime) -> datetime | None:
        """Return the occurrence in the minute of an instant, or ``None``.

        Where an expression names seconds, its minute is that second. ``@every`` names none:
        its first occurrence is one interval after the registration.
        """
        if self.expression.every is not None:
            return None
        latest = self.latest_at_or_before(instant)
        if self.offset:
            # The offset chose the second, so the whole minute counts.
            begins = instant.replace(second=0, microsecond=0)
            return latest if latest is not None and latest >= begins else None
        lasts = self.expression.resolution
        return latest if latest is not None and instant - latest < lasts else None

    def count_between(self, after: datetime, until: datetime) -> int:
        """Count the occurrences after one instant and up to another."""
        count = self._count(after, until)
        if self.omitted is not None and after < self.omitted <= until:
            count -= self.is_skipped_at(self.omitted)
        return count - sum(day.count for day in self.excluded_between(after, until))

    def lost_between(self, after: datetime, until: datetime) -> tuple[Lost, ...]:
        """Return the gaps that swallowed named local minutes (``dst_skip``)."""
        if self.gap == "shift":
            return ()
        return tuple(
            replace(each, resumes_at=each.resumes_at + self.offset)
            for each in self._ask(self.expression.lost_between, after, until)
            if not self._calendar_of(each.civil.date())
        )

    def upcoming(self, instant: datetime) -> Iterator[datetime]:
        """Yield every occurrence after an instant, in order."""
        following = self.next_after(instant)
        while following is not None:
            yield following
            following = self.next_after(following)

    # --- excluded and skipped occurrences ---

    def is_skipped_at(self, instant: datetime) -> bool:
        """Return whether an instant would be an occurrence if it were not left out."""
        return self._latest(instant) == instant and not self._calendar_of(self.day_of(instant))

    def excluded_between(self, after: datetime, until: datetime) -> Iterator[Excluded]:
        """Yield the excluded occurrences after one instant and up to another, by day."""
        following = None if self.exclusion is None else self._next(after)
        while following is not None and following <= until:
            day = self.day_of(following)
            ends, calendar = self._span_of(day)[1], self._calendar_of(day)
            ends = max(following, ends)
            if calendar:
                last = self._latest(min(ends, until)) or following
                yield Excluded(following, last, self._count(following - _TICK, last), calendar)
            following = self._next(ends)

    def next_excluded(self, after: datetime, before: datetime | None) -> Excluded | None:
        """Return the next day that is excluded from an instant on, up to the next occurrence."""
        if self.exclusion is None:
            return None
        until = after + _LONGEST_EXCLUSION if before is None else before
        return next(self.excluded_between(after, until), None)

    @property
    def is_complete(self) -> bool:
        """Return whether it has no exclusion and no skipped occurrence; equality ignores both."""
        return self.exclusion is None and self.omitted is None

    def complete(self) -> Schedule:
        """Return the schedule including excluded and skipped occurrences."""
        return replace(self, exclusion=None, omitted=None)

    def named_by(self, instant: datetime) -> datetime | None:
        """Return the occurrence that a user means by an instant, or ``None``.

        If an offset chose the second of an occurrence, its whole minute is meant.
        """
        found = self.in_minute_of(instant)
        if found is not None or not self.offset or instant.second or instant.microsecond:
            return found
        following = self.next_after(instant)
        return following if following is not None and following - instant < _MINUTE else None

    def day_of(self, occurrence: datetime) -> date:
        """Return the local day of an occurrence, without its offset."""
        return (occurrence - self.offset).astimezone(self.zone).date()

    def calendar_of(self, occurrence: datetime) -> str:
        """Return the calendar that excludes the day of an instant, or an empty text."""
        return self._calendar_of(self.day_of(occurrence))

    def calendar_at(self, occurrence: datetime) -> str:
        """Return the calendar that excludes the day of an instant, or an empty text.

        Raises:
            CalendarError: a calendar does not answer.
        """
        return "" if self.exclusion is None else self.exclusion.calendar_of(self.day_of(occurrence))

    def _left_out(self, occurrence: datetime) -> tuple[datetime, datetime] | None:
        """Return the span of an occurrence that is left out, or ``None``."""
        if occurrence == self.omitted:
            return occurrence, occurrence
        if self.exclusion is None:
            return None
        day = self.day_of(occurrence)
        return self._span_of(day) if self._calendar_of(day) else None

    def _calendar_of(self, day: date) -> str:
        if self.exclusion is None:
            return ""
        try:
            return self.exclusion.calendar_of(day)
        except CalendarError:
            return ""

    def _span_of(self, day: date) -> tuple[datetime, datetime]:
        """Return the first and the last instant of a day's occurrences."""
        begins, ends = (
            datetime.combine(each, time(), self.zone).astimezone(UTC) for each in (day, day + _DAY)
        )
        return begins + self.offset, ends + self.offset - _TICK

    # --- occurrences of the expression ---

    def _next(self, instant: datetime) -> datetime | None:
        return self._later(self._ask(self.expression.next_after, instant, **self._rules))

    def _latest(self, instant: datetime) -> datetime | None:
        return self._later(self._ask(self.expression.latest_at_or_before, instant, **self._rules))

    def _later(self, found: datetime | None) -> datetime | None:
        return None if found is None else found + self.offset

    def _count(self, after: datetime, until: datetime) -> int:
        return self._ask(self.expression.count_between, after, until, **self._rules)

    @property
    def _rules(self) -> dict[str, Any]:
        return {"anchor": self.anchor, "gap": self.gap, "fold": self.fold}

    def _ask(self, question: Callable[..., _T], *instants: datetime, **rules: Any) -> _T:
        try:
            return question(*(each - self.offset for each in instants), self.zone, **rules)
        except Exception as cause:
            asked = instants[0].isoformat()
            raise CronCalculationError(self.expression.text, asked, cause) from cause


MINUTES = 60


def load(schedules: Iterable[tuple[Schedule, int]], now: datetime) -> list[int]:
    """Count the occurrences of each of the 60 minutes that follow this one."""
    start = now.replace(second=0, microsecond=0) + _MINUTE
    found: Counter[int] = Counter()
    for schedule, number in schedules:
        for minute in _minutes(schedule, start):
            found[minute] += number
    return [found[minute] for minute in range(MINUTES)]


def _minutes(schedule: Schedule, start: datetime) -> Iterator[int]:
    """Yield the minutes with occurrences; several in one minute count once."""
    end, instant = start + MINUTES * _MINUTE, start - _TICK
    while (found := schedule.next_after(instant)) is not None and found < end:
        minute = (found - start) // _MINUTE
        yield minute
        instant = start + (minute + 1) * _MINUTE - _TICK
