"""The least: a text split and read, and two conversions between UTC and local time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from .walks import END, START, Step, Walker


class Case(Walker):
    """Answer with a local time that was not looked for, so that no answer is judged."""

    judged = False

    def parse(self, text: str) -> object:
        """Read five fields of one number or one range.

        Args:
            text: the expression.
        """
        return [[int(number) for number in field.split("-")] for field in text.split()]

    def walk(self, text: str, zone: ZoneInfo, *, backward: bool) -> Step:
        """Give what goes to the minute beside it, in local time.

        Args:
            text: not looked at.
            zone: of local times.
            backward: from the end.
        """
        at, step = (END, timedelta(minutes=-1)) if backward else (START, timedelta(minutes=1))

        def following() -> datetime:
            nonlocal at
            at = (at.astimezone(zone) + step).astimezone(UTC)
            return at

        return following
