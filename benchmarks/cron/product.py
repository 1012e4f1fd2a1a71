"""The product."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from django_declarative_cron.cron import parse

from .walks import END, START, Step, Walker, minute_before


class Case(Walker):
    """Ask for the instant after each answer; nothing is kept in between."""

    caches = True

    def parse(self, text: str) -> object:
        """Understand an expression.

        Args:
            text: the expression.
        """
        return parse(text)

    def walk(self, text: str, zone: ZoneInfo, *, backward: bool) -> Step:
        """Give what gives the next occurrence.

        Args:
            text: the expression.
            zone: of its local times.
            backward: from the end.
        """
        expression = parse(text, "ojs" if "/" in text else "posix")
        at = END if backward else START

        def following() -> datetime:
            nonlocal at
            if backward:
                found = expression.latest_at_or_before(minute_before(at), zone)
            else:
                found = expression.next_after(at, zone)
            assert found is not None
            at = found
            return found

        return following
