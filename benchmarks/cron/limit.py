"""The least: a text split and read, and two conversions between UTC and local time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from .walks import Step, Walker


class Case(Walker):
    """Answer with a local time that was not looked for, so that no answer is judged."""

    judged = False

    def parse(self, text: str) -> object:
        """Read five fields of one number or one range.

        Args:
            text: the expression.
        """
        return [[int(number) for number in field.split("-")] for field in text.split()]

    def steps(self, text: str, at: datetime, zone: ZoneInfo, *, backward: bool) -> Step:
        """Give what goes to the minute beside it, in local time.

        Args:
            text: not looked at.
            at: where to begin.
            zone: of local times.
            backward: towards the past.
        """
        step = timedelta(minutes=-1 if backward else 1)

        def following() -> datetime:
            nonlocal at
            at = (at.astimezone(zone) + step).astimezone(UTC)
            return at

        return following
