"""The parsed cron expression."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Literal
from zoneinfo import ZoneInfo

from .civil import CivilSchedule, DayRule, Masks, schedule_of, values_of
from .interval import Interval
from .occurrences import (
    Rules,
    count_occurrences,
    latest_occurrence,
    losing_spans,
    next_occurrence,
)
from .posix import Parsed
from .timeline import timeline_of, to_instant, to_second

Gap = Literal["skip", "shift"]
Fold = Literal["first", "both"]

_MINUTE, _SECOND = timedelta(minutes=1), timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Lost:
    """The occurrences that an expression loses in one gap of the wall clock.

    Args:
        resumes_at: the first instant after the gap, aware UTC.
        civil: the first lost local minute that the expression names, naive.
        count: how many of them are lost.
    """

    resumes_at: datetime
    civil: datetime
    count: int


@dataclass(frozen=True, eq=False, repr=False)
class CronExpression:
    """A cron expression, as returned by ``parse``; expressions of equal meaning are equal.

    Returned instants are aware UTC datetimes, and arguments must be aware. A zone is a
    ``ZoneInfo``. ``occurrences`` describes local times that do not exist or occur twice.
    """

    text: str
    dialect: str
    _parsed: Parsed

    @property
    def _masks(self) -> Masks:
        return self._parsed.masks

    @property
    def _civil(self) -> CivilSchedule:
        return schedule_of(self._parsed.masks)

    @property
    def seconds(self) -> frozenset[int]:
        """Return the named seconds: 0, unless there is a field for them."""
        return values_of(self._masks.seconds)

    @property
    def minutes(self) -> frozenset[int]:
        """Return the named minutes, 0 to 59."""
        return values_of(self._masks.minutes)

    @property
    def hours(self) -> frozenset[int]:
        """Return the named hours, 0 to 23."""
        return values_of(self._masks.hours)

    @property
    def days(self) -> frozenset[int]:
        """Return the named days of the month, 1 to 31."""
        return values_of(self._masks.days)

    @property
    def months(self) -> frozenset[int]:
        """Return the named months, 1 to 12."""
        return values_of(self._masks.months)

    @property
    def weekdays(self) -> frozenset[int]:
        """Return the named weekdays, 0 (Sunday) to 6."""
        return values_of(self._masks.weekdays)

    @property
    def day_rules(self) -> tuple[DayRule, ...]:
        """Return the rules of the day field: ``L``, ``LW``, ``15W``."""
        return self._masks.day_rules

    @property
    def weekday_rules(self) -> tuple[DayRule, ...]:
        """Return the rules of the weekday field: ``5L``, ``5#3``."""
        return self._masks.weekday_rules

    @property
    def every(self) -> timedelta | None:
        """Return the time between occurrences of ``@every``, None for fields."""
        return self._parsed.every

    @property
    def resolution(self) -> timedelta:
        """Return the unit: a minute, a second with six fields, a microsecond for ``@every``."""
        if self.every is not None:
            return timedelta.resolution
        return _SECOND if self._civil.unit == 1 else _MINUTE

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return remarks about surprising parts of the text."""
        return self._parsed.remarks

    @property
    def hour_restricted(self) -> bool:
        """Return whether the hour field is not ``*``."""
        return self._parsed.hour_restricted

    @property
    def day_restricted(self) -> bool:
        """Return whether the day field is not ``*``."""
        return self._parsed.day_restricted

    @property
    def weekday_restricted(self) -> bool:
        """Return whether the weekday field is not ``*``."""
        return self._parsed.weekday_restricted

    @property
    def restricted_both(self) -> bool:
        """Return whether both day fields are restricted, so that either match is enough."""
        return self._masks.either_day

    def matches(self, civil: datetime) -> bool:
        """Return whether a local time matches.

        Args:
            civil: naive; smaller units than those of the expression are ignored.

        Raises:
            ValueError: ``civil`` is aware.
        """
        if civil.tzinfo is not None:
            raise ValueError(f"civil must be a naive local datetime, got {civil!r}")
        return self._civil.names(to_second(civil.replace(tzinfo=UTC)))

    def next_after(
        self,
        instant: datetime,
        zone: ZoneInfo | timezone,
        *,
        anchor: datetime | None = None,
        gap: Gap = "skip",
        fold: Fold = "first",
    ) -> datetime | None:
        """Return the first occurrence after an instant.

        Args:
            instant: aware.
            zone: the time zone of the expression.
            anchor: start of an ``@every`` interval; ignored for fields.
            gap: ``skip`` or ``shift`` local minutes that do not exist.
            fold: use the ``first`` or ``both`` of local minutes that occur twice.

        Returns:
            An aware UTC instant, or ``None`` if there is none within 50 years.

        Raises:
            ValueError: ``instant`` is naive, ``gap`` or ``fold`` is unknown, or ``@every``
                has no anchor.
        """
        rules = _rules_of(gap, fold)
        if self.every is not None:
            return self._interval(self.every, anchor).next_after(instant)
        low = to_second(instant) + 1
        found = next_occurrence(self._civil, timeline_of(zone), low, rules)
        return None if found is None else to_instant(found)

    def latest_at_or_before(
        self,
        instant: datetime,
        zone: ZoneInfo | timezone,
        *,
        anchor: datetime | None = None,
        gap: Gap = "skip",
        fold: Fold = "first",
    ) -> datetime | None:
        """Return the last occurrence that is not after an instant; otherwise as ``next_after``."""
        rules = _rules_of(gap, fold)
        if self.every is not None:
            return self._interval(self.every, anchor).latest_at_or_before(instant)
        found = latest_occurrence(self._civil, timeline_of(zone), to_second(instant), rules)
        return None if found is None else to_instant(found)

    def count_between(
        self,
        after: datetime,
        until: datetime,
        zone: ZoneInfo | timezone,
        *,
        anchor: datetime | None = None,
        gap: Gap = "skip",
        fold: Fold = "first",
    ) -> int:
        """Return the number of occurrences after one instant and not after another.

        The effort grows with the days between, not with the occurrences.
        """
        rules = _rules_of(gap, fold)
        if self.every is not None:
            return self._interval(self.every, anchor).count_between(after, until)
        low, high = to_second(after) + 1, to_second(until)
        return count_occurrences(self._civil, timeline_of(zone), low, high, rules)

    def lost_between(
        self, after: datetime, until: datetime, zone: ZoneInfo | timezone
    ) -> tuple[Lost, ...]:
        """Return the occurrences lost in gaps that end after one instant and not after another.

        Empty when the hour field is ``*``: such a schedule goes on an hour later, nothing of
        it is missed.
        """
        if not self.hour_restricted:
            return ()
        low, high = to_second(after) + 1, to_second(until)
        spans = losing_spans(self._civil, timeline_of(zone), low, high)
        return tuple(
            Lost(
                resumes_at=to_instant(span.start),
                civil=to_instant(first).replace(tzinfo=None),
                count=self._civil.count(span.local_before, span.local_start),
            )
            for span, first in spans
        )

    def _interval(self, every: timedelta, anchor: datetime | None) -> Interval:
        if anchor is None:
            raise ValueError(f"{self.text!r} counts from an instant: an anchor is needed")
        if anchor.tzinfo is None:
            raise ValueError(f"anchor must be an aware datetime, got {anchor!r}")
        return Interval(every, anchor.astimezone(UTC))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CronExpression):
            return NotImplemented
        return (self._masks, self.every) == (other._masks, other.every)

    def __hash__(self) -> int:
        return hash((self._masks, self.every))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<CronExpression {self.text!r} {self.dialect}>"


def _rules_of(gap: str, fold: str) -> Rules:
    if gap not in ("skip", "shift") or fold not in ("first", "both"):
        raise ValueError(f"gap must be skip or shift, fold first or both: got {gap!r}, {fold!r}")
    return Rules(gap == "shift", fold == "both")
