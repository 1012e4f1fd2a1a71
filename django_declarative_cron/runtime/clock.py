"""The only caller of the real clock, and of the database for its time."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Protocol

from django.db.models.expressions import BaseExpression

from ..store.database import DatabaseNow


class Clock(Protocol):
    """Three kinds of time: the wall's, the monotonic one, the database's."""

    def now(self) -> datetime:
        """Give the instant on the wall clock, aware UTC."""

    def monotonic(self) -> float:
        """Give seconds that only grow."""

    def database_time(self) -> BaseExpression:
        """Give the expression by which a query asks for the database's time."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until an event is set or seconds have passed; tell which."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Give the instant on the wall clock, aware UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Give seconds that only grow."""
        return time.monotonic()

    def database_time(self) -> BaseExpression:
        """Give the expression by which a query asks for the database's time."""
        return DatabaseNow()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until an event is set or seconds have passed; tell which.

        Args:
            event: what ends the wait early.
            seconds: the longest wait.
        """
        return event.wait(max(seconds, 0.0))


system_clock: Clock = SystemClock()
