"""Days that calendars take out of schedules, as a schedule sees them; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol


class Exclusion(Protocol):
    """Say of days whether a calendar excludes them."""

    def calendar_of(self, day: date) -> str:
        """Give the name of the calendar that excludes a day, empty where none does.

        Args:
            day: as the clocks of the task's zone show it.

        Raises:
            CalendarError: a calendar gives no answer.
        """


class Calendars(Protocol):
    """The calendars that a project has."""

    @property
    def names(self) -> Sequence[str]:
        """Give their names."""

    def exclusion(self, names: Sequence[str]) -> Exclusion:
        """Give what some of them exclude together.

        Args:
            names: of calendars; an unknown one gives no answer when it is asked.
        """


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
