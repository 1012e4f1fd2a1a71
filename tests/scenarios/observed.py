"""What came of a scenario, in short texts: instants leave out 2024-01-01, the day of most."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django_declarative_cron.core.events import Event
from django_declarative_cron.models import TaskRun
from django_declarative_cron.testing import Simulation


def utc(text: str) -> datetime:
    """Read an instant."""
    full = text if "-" in text else f"2024-01-01T{text}"
    return datetime.fromisoformat(full).replace(tzinfo=UTC)


def text_of(instant: datetime) -> str:
    """Write an instant in the shortest form that ``utc`` reads."""
    return instant.replace(tzinfo=None).isoformat().removesuffix(":00").removeprefix("2024-01-01T")


def starts(sim: Simulation, name: str = "t") -> list[str]:
    return [text_of(at.astimezone(UTC)) for at in sim.starts(name)]


def runs(sim: Simulation, columns: str, name: str = "t") -> list[Any]:
    """Return columns of a task's history, oldest first: values of one, or tuples of several."""
    return _columns(sim.runs(name), columns)


def unserved(sim: Simulation, name: str = "t") -> list[tuple[str, str, int, str]]:
    """Return occurrences that did not run: outcome, reason, how many, and the newest of them."""
    rows = [run for run in sim.runs(name) if run.outcome in ("skipped", "missed")]
    return _columns(rows, "outcome reason count scheduled_for")


def _columns(rows: list[TaskRun], columns: str) -> list[Any]:
    found = [tuple(_value(getattr(row, name)) for name in columns.split()) for row in rows]
    return found if " " in columns else [value for (value,) in found]


def _value(value: object) -> object:
    return text_of(value.astimezone(UTC)) if isinstance(value, datetime) else value


def names(events: list[Event]) -> list[str]:
    """Name events, without those of every poll."""
    chatter = ("Poll", "Scheduler", "Leadership", "TaskScheduled", "TaskAdded", "TaskPreserved")
    found = [type(event).__name__ for event in events]
    return [name for name in found if not name.startswith(chatter)]


def of(told: list[Event], kind: type[Event]) -> list[Any]:
    return [event for event in told if isinstance(event, kind)]
