"""A cron expression bound to its zone: the one answer to "when"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from ..cron import CronExpression, Lost
from ..exceptions import CronCalculationError

Gap = Literal["skip", "shift"]
Fold = Literal["first", "both"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Answer in UTC instants for one expression in one zone.

    Every answer may raise ``CronCalculationError`` (001 Cron Calculation Errors): rules of
    the installed time zone database that cannot be read, or a fault of ours.

    Args:
        expression: the parsed cron expression.
        zone: where its civil minutes are.
        gap: what becomes of a local minute that does not exist.
        fold: which passes of a local minute that happens twice count.
        anchor: the instant from which ``@every`` counts; without it such an expression
            has no answers.
    """

    expression: CronExpression
    zone: ZoneInfo
    gap: Gap = "skip"
    fold: Fold = "first"
    anchor: datetime | None = field(default=None, compare=False)

    def anchored(self, instant: datetime) -> Schedule:
        """Give the schedule as it counts for a task: ``@every`` from its registration on.

        A late run moves nothing: the next one comes at its own time (002 Interval Expression).

        Args:
            instant: of the registration, or of the newest override.
        """
        return self if self.expression.every is None else replace(self, anchor=instant)

    def next_after(self, instant: datetime) -> datetime | None:
        """Give the first occurrence strictly after an instant, or ``None``."""
        try:
            return self.expression.next_after(
                instant, self.zone, anchor=self.anchor, gap=self.gap, fold=self.fold
            )
        except Exception as cause:
            raise self._failure(instant, cause) from cause

    def latest_at_or_before(self, instant: datetime) -> datetime | None:
        """Give the newest occurrence not later than an instant, or ``None``."""
        try:
            return self.expression.latest_at_or_before(
                instant, self.zone, anchor=self.anchor, gap=self.gap, fold=self.fold
            )
        except Exception as cause:
            raise self._failure(instant, cause) from cause

    def in_minute_of(self, instant: datetime) -> datetime | None:
        """Give the occurrence whose minute an instant lies in, or ``None``.

        Where an expression names seconds, its minute is that second. ``@every`` names none:
        its first occurrence is one interval after the registration.
        """
        if self.expression.every is not None:
            return None
        latest = self.latest_at_or_before(instant)
        lasts = self.expression.resolution
        return latest if latest is not None and instant - latest < lasts else None

    def count_between(self, after: datetime, until: datetime) -> int:
        """Count the occurrences after one instant and up to another."""
        try:
            return self.expression.count_between(
                after, until, self.zone, anchor=self.anchor, gap=self.gap, fold=self.fold
            )
        except Exception as cause:
            raise self._failure(after, cause) from cause

    def lost_between(self, after: datetime, until: datetime) -> tuple[Lost, ...]:
        """Give the gaps that swallowed named local minutes (``dst_skip``)."""
        if self.gap == "shift":
            return ()
        try:
            return self.expression.lost_between(after, until, self.zone)
        except Exception as cause:
            raise self._failure(after, cause) from cause

    def upcoming(self, instant: datetime) -> Iterator[datetime]:
        """Yield every occurrence after an instant, in order."""
        following = self.next_after(instant)
        while following is not None:
            yield following
            following = self.next_after(following)

    def _failure(self, instant: datetime, cause: Exception) -> CronCalculationError:
        return CronCalculationError(self.expression.text, instant.isoformat(), cause)
