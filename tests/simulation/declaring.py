"""Making what is declared in a story: schedules near an instant at which an offset changes."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

Registration = tuple[Any, ...]

# Zones, each with instants near which its offset changes.
PLACES = (
    ("UTC", ("2024-01-01T10:00", "2024-02-28T22:00", "2023-12-31T22:30")),
    ("Europe/Berlin", ("2024-03-31T01:00", "2024-10-27T01:00")),
    ("America/New_York", ("2024-03-10T07:00", "2024-11-03T06:00")),
    ("America/Santiago", ("2024-04-07T03:00", "2024-09-08T04:00")),
    ("America/Sao_Paulo", ("2018-11-04T03:00", "2018-02-18T02:00")),
    ("Australia/Lord_Howe", ("2024-04-06T15:00", "2024-10-05T15:30")),
    ("Pacific/Apia", ("2011-12-30T10:00",)),
    ("Asia/Kathmandu", ("2024-05-05T18:15",)),
)
BEFORE = (0, 30, 600, 1800, 3600, 3600, 9000, 45_000)
DELAYS = (0, 30, 60, 61, 120, 300, 300, 900, 3600, 86_400)


class Declaring:
    """A place, a time, and what may be declared there.

    Args:
        chance: what is chosen by.
        may_be_disabled: some tasks are.
    """

    def __init__(self, chance: random.Random, may_be_disabled: bool) -> None:
        self.chance = chance
        self.zone, transitions = chance.choice(PLACES)
        self.transition = datetime.fromisoformat(chance.choice(transitions)).replace(tzinfo=UTC)
        self.start = self.transition - timedelta(seconds=chance.choice(BEFORE))
        self._may_be_disabled = may_be_disabled

    def registration(self, name: str) -> Registration:
        """Declare a task."""
        zone = self.zone if self.chance.random() < 0.8 else "UTC"
        keys: dict[str, Any] = {}
        if self.chance.random() < 0.15:
            keys["gap"] = "shift"
        if self.chance.random() < 0.15:
            keys["fold"] = "both"
        if self._may_be_disabled and self.chance.random() < 0.1:
            keys["enabled"] = False
        head = (name, self._cron(zone), self.chance.choice(DELAYS), zone)
        return (*head, keys) if keys else head

    def _cron(self, zone: str) -> str:
        soon = self._local_time_near(zone)
        minute, hour = soon.minute, soon.hour
        weekday = soon.isoweekday() % 7
        return self.chance.choice(
            (
                "* * * * *",
                f"{minute} * * * *",
                f"{minute},{(minute + 20) % 60} * * * *",
                "0,15,30,45 * * * *",
                f"{minute} {hour} * * *",
                f"{minute} {hour},{(hour + 1) % 24} * * *",
                f"{minute} {hour} {soon.day} * {(weekday + 1) % 7}",
                f"0 * {soon.day} * {weekday}",
                f"{minute} {hour} {soon.day} * *",
                f"* {hour} * * *",
            )
        )

    def _local_time_near(self, zone: str) -> datetime:
        """Give a local time that comes soon, or one that is lost or comes twice."""
        if self.chance.random() < 0.5:
            ahead = timedelta(seconds=self.chance.choice((0, 60, 600, 3600, 4000, 7200, 20_000)))
            return (self.start + ahead).astimezone(ZoneInfo(zone))
        last = (self.transition - timedelta(minutes=1)).astimezone(ZoneInfo(zone))
        return last + timedelta(minutes=self.chance.choice((-50, -25, 0, 1, 6, 31)))


def switched(registration: Registration) -> Registration:
    """Declare the same task, enabled where it was disabled and the other way round."""
    *head, keys = registration if len(registration) == 5 else (*registration, {})
    return (*head, {**keys, "enabled": not keys.get("enabled", True)})


def period_of(cron: str) -> float:
    """Say roughly how many seconds lie between two occurrences."""
    minute, hour, *_ = cron.split()
    in_an_hour = 60 if minute == "*" else minute.count(",") + 1
    in_a_day = in_an_hour * (24 if hour == "*" else hour.count(",") + 1)
    return 86_400 / in_a_day if hour == "*" else 3600 / in_an_hour
