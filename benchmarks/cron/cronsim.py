"""cronsim: an iterator, which is kept."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

from cronsim import CronSim

from .walks import END, START, Step, Walker


class Case(Walker):
    """Ask an iterator again and again."""

    def parse(self, text: str) -> object:
        """Understand an expression: the iterator is made with it.

        Args:
            text: the expression.
        """
        return CronSim(text, START)

    def walk(self, text: str, zone: ZoneInfo, *, backward: bool) -> Step:
        """Give what gives the next occurrence.

        Args:
            text: the expression.
            zone: of its local times.
            backward: from the end.
        """
        iterator = CronSim(text, (END if backward else START).astimezone(zone), reverse=backward)
        return lambda: next(iterator).astimezone(UTC)
