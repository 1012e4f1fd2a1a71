"""The event records of a simulation, for the checker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..core.declarations.declaration import Declaration

Record = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One record, and the index of its instance, ``None`` for an event of all instances."""

    record: Record
    instance: int | None = None


class Trace:
    """Actions in their order; those of one instant keep it, each at its own position."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def action(self, instance: int, event: str, at: datetime, **values: Any) -> Entry:
        """Record an action; ``event`` is its name in the theory's alphabet."""
        entry = Entry({"at": at, "event": event, **values}, instance)
        self._entries.append(entry)
        return entry

    def freeze(self, since: datetime, until: datetime) -> None:
        """Record a time without any activity (004 Frozen), which excludes its end."""
        if since < until:
            self._entries.append(Entry({"at": since, "event": "Freeze", "until": until}))

    def withdraw(self, entries: Iterable[Entry]) -> None:
        gone = set(map(id, entries))
        self._entries = [entry for entry in self._entries if id(entry) not in gone]

    def entries(self, now: datetime) -> list[Entry]:
        """Return all entries, closed by a tick."""
        return [*self._entries, Entry({"at": now, "event": "Tick"})]

    def task_names(self) -> list[str]:
        names: set[str] = set()
        for entry in self._entries:
            names.update(each["name"] for each in entry.record.get("registrations", ()))
            names.update(filter(None, [entry.record.get("task")]))
        return sorted(names)


def described(declarations: Iterable[Declaration]) -> list[Record]:
    """Return a registration list as the records carry it."""
    return [
        {
            "name": declaration.name,
            "cron": declaration.cron,
            "retry_delay": declaration.retry_delay,
            "timezone": declaration.timezone,
            "dialect": declaration.dialect,
            "gap": declaration.schedule.gap,
            "fold": declaration.schedule.fold,
            "overlap_policy": declaration.overlap_policy,
            **({} if declaration.retry_delay is not None else {"retry": "policy"}),
            **_operating(declaration),
        }
        for declaration in declarations
    ]


def _operating(declaration: Declaration) -> Record:
    """Return the fields that are present only if the task sets them."""
    offset, operating = declaration.schedule.offset, declaration.operating
    said: Record = {"offset": offset} if offset else {}
    if operating.exclude_calendars or operating.catch_up_window is not None:
        said["leaves_out"] = "yes"
    return said
