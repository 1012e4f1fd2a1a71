"""What becomes of events that are to be posted to another program."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDeliveryFailed(Event, level="WARNING"):
    """The receiver of events does not take them, for the so manieth time; it is tried again."""

    error: str
    failures: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDeliveryResumed(Event, level="INFO"):
    """The receiver of events takes them again."""

    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSetAside(Event, level="ERROR"):
    """One event was refused for too long; it is kept, and those behind it go on."""

    event_id: str
    type: str
    about: str
    attempts: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsForgotten(Event, level="ERROR"):
    """Too many events were waiting; the oldest are lost."""

    count: int
    most: int
