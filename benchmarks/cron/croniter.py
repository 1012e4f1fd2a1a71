"""croniter: an iterator, which is kept."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

from croniter import croniter

from .walks import START, Step, Walker


class Case(Walker):
    """Its iterator is made with the expression."""

    def parse(self, text: str) -> object:
        return croniter(text, START)

    def steps(self, text: str, at: datetime, zone: ZoneInfo, *, backward: bool) -> Step:
        iterator = croniter(text, at.astimezone(zone))
        return partial(iterator.get_prev if backward else iterator.get_next, datetime)
