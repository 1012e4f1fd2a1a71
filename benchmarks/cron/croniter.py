"""croniter: an iterator, which is kept."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from croniter import croniter

from .walks import END, START, Step, Walker


class Case(Walker):
    """Ask an iterator again and again."""

    def parse(self, text: str) -> object:
        """Understand an expression: the iterator is made with it.

        Args:
            text: the expression.
        """
        return croniter(text, START)

    def walk(self, text: str, zone: ZoneInfo, *, backward: bool) -> Step:
        """Give what gives the next occurrence.

        Args:
            text: the expression.
            zone: of its local times.
            backward: from the end.
        """
        iterator = croniter(text, (END if backward else START).astimezone(zone))
        ask = iterator.get_prev if backward else iterator.get_next

        def following() -> datetime:
            found: datetime = ask(datetime)
            return found.astimezone(UTC)

        return following
