"""The product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from django_declarative_cron.cron import parse

from ..harness.parts import Sample
from .walks import WALKS, Step, Walker, minute_before

OJS = replace(WALKS[0], figure="next, OJS dialect")


class Case(Walker):
    """Ask for the instant after each answer; nothing is kept in between."""

    caches = True
    dialect = "posix"

    def parse(self, text: str) -> object:
        """Understand an expression.

        Args:
            text: the expression.
        """
        return parse(text)

    def steps(self, text: str, at: datetime, zone: ZoneInfo, *, backward: bool) -> Step:
        """Give what gives the next occurrence.

        Args:
            text: the expression.
            at: where to begin.
            zone: of its local times.
            backward: towards the past.
        """
        expression = parse(text, "ojs" if "/" in text else self.dialect)

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

    def measure(self) -> Iterator[Sample]:
        """Walk in one dialect, and for comparison in the other one, too."""
        yield from super().measure()
        self.dialect = "ojs"
        yield self._take(OJS)
        self.dialect = "posix"
