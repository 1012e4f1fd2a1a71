"""cronsim: an iterator, which is kept."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim

from .walks import START, Step, Walker


class Case(Walker):
    """Its iterator is made with the expression."""

    def parse(self, text: str) -> object:
        return CronSim(text, START)

    def steps(self, text: str, at: datetime, zone: ZoneInfo, *, backward: bool) -> Step:
        iterator = CronSim(text, at.astimezone(zone), reverse=backward)
        return lambda: next(iterator)
