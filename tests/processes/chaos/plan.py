"""How long, how many, and by which chance; the same in every process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

PREFIX = "DDC_CHAOS_"


@dataclass(frozen=True)
class Plan:
    """One storm.

    Args:
        tasks: number of minutely tasks.
        lease: in seconds; renewed three times as often.
        gap: mean seconds between two events.
        longest: seconds that the longest runs take.
        weather: ``all``, or ``clocks`` for processes that are stopped for any time and a wall
            clock that is set, with little else.
        evidence: file that callbacks write to.
    """

    minutes: float = 30.0
    schedulers: int = 5
    tasks: int = 100
    lease: float = 15.0
    gap: float = 4.0
    longest: float = 75.0
    weather: str = "all"
    seed: int = 1
    evidence: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Plan:
        """Read what is named there; the rest is the long form."""
        given: dict[str, Any] = {}
        for field in fields(cls):
            text = environment.get(PREFIX + field.name.upper())
            if text:
                given[field.name] = type(field.default)(text)
        return cls(**given)

    def environment(self) -> dict[str, str]:
        return {PREFIX + f.name.upper(): str(getattr(self, f.name)) for f in fields(self)}

    def registrations(self) -> list[tuple[str, str, str, timedelta]]:
        """Return the tasks: all minutely, and tried again after a second."""
        work = "tests.processes.chaos.callbacks.work"
        return [
            (f"task-{number:03}", "* * * * *", work, timedelta(seconds=1))
            for number in range(self.tasks)
        ]
