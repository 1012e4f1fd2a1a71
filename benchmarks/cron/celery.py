"""celery: a ``crontab``, which gives how long it is from a run to the next one."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from celery import Celery
from celery.schedules import crontab

from .walks import Step, Walker


class Case(Walker):
    """Ask a schedule for the instant after each answer; it knows no previous one."""

    goes_back = False

    def parse(self, text: str) -> object:
        return crontab.from_string(text)

    def steps(self, text: str, at: datetime, zone: ZoneInfo, *, backward: bool) -> Step:
        app = Celery(set_as_current=False)
        app.conf.timezone = zone.key
        schedule = crontab.from_string(text)
        schedule.app = app
        at = at.astimezone(zone)

        def following() -> datetime:
            nonlocal at
            start, delta, _ = schedule.remaining_delta(at)
            at = start + delta
            return at

        return following
