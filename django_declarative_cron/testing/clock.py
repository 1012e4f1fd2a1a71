"""A clock that passes only when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Value
from django.db.models.expressions import BaseExpression

from ..fields import InstantField

Instant = datetime | str


class ManualClock:
    """A clock that stands still until it is set.

    Args:
        start: the first instant, aware.
    """

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._monotonic = 0.0

    def now(self) -> datetime:
        """Give the virtual instant, aware UTC."""
        return self._now

    def monotonic(self) -> float:
        """Give virtual seconds; a leap of the clock does not add to them."""
        return self._monotonic

    def database_time(self) -> BaseExpression:
        """Give an expression of the virtual instant: the database's time is virtual too."""
        return _VirtualNow(self)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Let the time of a wait pass at once.

        Args:
            event: what ends it.
            seconds: the longest wait.
        """
        if not event.is_set():
            self.advance(self._now + timedelta(seconds=max(seconds, 0)))
        return event.is_set()

    def advance(self, to: datetime) -> None:
        """Let time pass.

        Args:
            to: the new instant, not before the present one.
        """
        self._monotonic += (to - self._now).total_seconds()
        self._now = to

    def leap(self, to: datetime) -> None:
        """Set the clock on the wall, in either direction, while no time passes.

        Args:
            to: the new instant.
        """
        self._now = to


class _VirtualNow(Value):
    """The instant of a manual clock when the query is compiled."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(None, output_field=InstantField())
        self._clock = clock

    @property
    def instant(self) -> Callable[[], datetime]:
        return self._clock.now

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        self.value = self._clock.now()
        return super().as_sql(compiler, connection)

    def as_mysql(self, compiler: Any, connection: Any) -> Any:
        # A literal comes back as text there, unless it is said to be a time.
        sql, params = self.as_sql(compiler, connection)
        return f"CAST({sql} AS datetime(6))", params


def instant(value: Instant) -> datetime:
    """Read an instant.

    Args:
        value: aware, or text in ISO 8601; UTC where it names no zone.
    """
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
