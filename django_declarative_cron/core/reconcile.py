"""Compare a registration set with stored rows, and two releases by their numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from .declarations.declaration import MILLISECOND, Columns, Declaration

_NUMBERED = re.compile(r"v?\d+(?:[.\-_]\d+)*", re.ASCII | re.IGNORECASE)


def is_older(release: str, other: str) -> bool | None:
    """Compare releases by their numbers: ``1.9`` is older than ``v1.10``.

    Returns:
        whether it is older; ``None`` unless both consist of numbers.
    """
    if not (_NUMBERED.fullmatch(release) and _NUMBERED.fullmatch(other)):
        return None
    mine, others = _numbers(release), _numbers(other)
    length = max(len(mine), len(others))
    return _padded(mine, length) < _padded(others, length)


def _numbers(release: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"[0-9]+", release)]


def _padded(numbers: list[int], length: int) -> list[int]:
    return numbers + [0] * (length - len(numbers))


Row = tuple[str, str, str, timedelta | None, str, str]
"""The fields of ``Stored`` in their order."""


class Stored(NamedTuple):
    """The columns of a row that a plan compares.

    Args:
        name: the task's name.
        cron: raw text.
        timezone: raw text.
        retry_delay: the raw value; ``None`` with a retry policy.
        digest: of the whole declaration.
        origin: where it was declared.
    """

    name: str
    cron: str
    timezone: str
    retry_delay: timedelta | None
    digest: str
    origin: str = "settings"

    @property
    def columns(self) -> Columns:
        """Return the values to compare with those of a declaration."""
        return (self.cron, self.timezone, self.retry_delay, self.digest, self.origin)

    @property
    def identity(self) -> tuple[str, str, timedelta | None]:
        """Return the values that distinguish an override."""
        return (self.cron, self.timezone, self.retry_delay)


@dataclass(frozen=True, slots=True)
class Override:
    """One task with a changed schedule.

    Args:
        declaration: the current declaration.
        stored: the content of the row.
    """

    declaration: Declaration
    stored: Stored

    def changes(self) -> dict[str, tuple[Any, Any]]:
        """Return old and new value of each field that differs, delays in milliseconds."""
        new, old = self.declaration, self.stored
        pairs = {
            "cron": (old.cron, new.cron),
            "timezone": (old.timezone, new.timezone),
            "origin": (old.origin, new.origin),
            "retry_delay_ms": (_milliseconds(old.retry_delay), _milliseconds(new.retry_delay)),
        }
        return {field: pair for field, pair in pairs.items() if pair[0] != pair[1]}


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes of a reconciliation.

    Args:
        new: declared, not stored.
        updated: stored with the same schedule; something else changed.
        unchanged: stored exactly so.
        overridden: stored with another schedule.
        orphaned: names stored, not declared.
    """

    new: tuple[Declaration, ...] = ()
    updated: tuple[Declaration, ...] = ()
    unchanged: Sequence[Declaration] = ()
    overridden: tuple[Override, ...] = ()
    orphaned: tuple[str, ...] = ()

    @property
    def preserved(self) -> tuple[Declaration, ...]:
        """Return every declaration that keeps its state (001 Preserved Task)."""
        return (*self.updated, *self.unchanged)

    @property
    def is_empty(self) -> bool:
        """Return whether no row changes."""
        return not (self.new or self.updated or self.overridden or self.orphaned)


def plan(declarations: Collection[Declaration], rows: Iterable[Row]) -> Plan:
    """Return the changes from stored rows to a registration set (001 Override Resolution)."""
    new = {declaration.name: declaration for declaration in declarations}
    unlike: dict[str, Row] = {}
    for row in rows:
        declaration = new.pop(row[0], None)
        if declaration is None or row[1:] != declaration.columns:
            unlike[row[0]] = row
    if not new and not unlike:
        return Plan(unchanged=tuple(declarations))
    updated: list[Declaration] = []
    unchanged: list[Declaration] = []
    overridden: list[Override] = []
    for declaration in declarations:
        found = unlike.pop(declaration.name, None)
        if found is not None and _is_of_another(before := Stored(*found), declaration):
            overridden.append(Override(declaration, before))
        elif found is not None:
            updated.append(declaration)
        elif declaration.name not in new:
            unchanged.append(declaration)
    gone = [Stored(*row) for row in unlike.values()]
    orphaned = sorted(row.name for row in gone if row.origin == "settings")
    kept = tuple(updated), tuple(unchanged)
    return Plan(tuple(new.values()), *kept, tuple(overridden), tuple(orphaned))


def _is_of_another(row: Stored, declaration: Declaration) -> bool:
    """Return whether a row has another schedule or origin, or cannot be decoded."""
    return row.identity != declaration.identity or row.origin != declaration.origin


def _milliseconds(delay: timedelta | None) -> float | None:
    if delay is None:
        return None
    whole, rest = divmod(delay, MILLISECOND)
    return whole if not rest else delay / MILLISECOND
