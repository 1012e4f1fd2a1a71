"""celery: a ``crontab``, which gives how long it is from a run to the next one."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from celery import Celery
from celery.schedules import crontab

from .walks import START, Step, Walker


class Case(Walker):
    """Ask a schedule for the instant after each answer; it knows no previous one."""

    goes_back = False

    def parse(self, text: str) -> object:
        """Understand an expression.

        Args:
            text: the expression.
        """
        return crontab.from_string(text)

    def walk(self, text: str, zone: ZoneInfo, *, backward: bool) -> Step:
        """Give what gives the next occurrence.

        Args:
            text: the expression.
            zone: of its local times.
            backward: never.
        """
        app = Celery(set_as_current=False)
        app.conf.timezone = zone.key
        schedule = crontab.from_string(text)
        schedule.app = app
        at = START.astimezone(zone)

        def following() -> datetime:
            nonlocal at
            start, delta, _ = schedule.remaining_delta(at)
            at = start + delta
            found: datetime = at.astimezone(UTC)
            return found

        return following
