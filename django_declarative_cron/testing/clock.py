"""A clock that advances only on request."""

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
    """A clock that advances only on request.

    Args:
        start: the first instant, aware.
    """

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._monotonic = 0.0

    def now(self) -> datetime:
        """Return the virtual time, aware UTC."""
        return self._now

    def monotonic(self) -> float:
        """Return virtual seconds, which ``leap`` does not change."""
        return self._monotonic

    def database_time(self) -> BaseExpression:
        """Return a database expression of the virtual time."""
        return _VirtualNow(self)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Advance the clock by the time of a wait, which the event ends at once."""
        if not event.is_set():
            self.advance(self._now + timedelta(seconds=max(seconds, 0)))
        return event.is_set()

    def advance(self, to: datetime) -> None:
        """Advance the clock.

        Args:
            to: the new instant, not before the present one.
        """
        self._monotonic += (to - self._now).total_seconds()
        self._now = to

    def leap(self, to: datetime) -> None:
        """Set the clock, forward or back, while no time passes.

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
        """Return what reads the clock; the store asks a virtual time for it by this name."""
        return self._clock.now

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        """Return the instant that the clock shows now as a parameter."""
        self.value = self._clock.now()
        return super().as_sql(compiler, connection)

    def as_mysql(self, compiler: Any, connection: Any) -> Any:
        """Return the same, cast: MySQL returns a literal as text otherwise."""
        sql, params = self.as_sql(compiler, connection)
        return f"CAST({sql} AS datetime(6))", params


def instant(value: Instant) -> datetime:
    """Return an instant as an aware datetime in UTC.

    Args:
        value: an aware datetime, or ISO 8601 text (default zone UTC).
    """
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
