"""What becomes of check-ins with monitors and of notifications."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInFailed(Event, level="WARNING"):
    """A monitor does not take check-ins, for the so manieth time; that one is lost."""

    monitor: str
    error: str
    failures: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationFailed(Event, level="WARNING"):
    """A channel does not take notifications, for the so manieth time; that one is lost."""

    channel: str
    error: str
    failures: int = 1
