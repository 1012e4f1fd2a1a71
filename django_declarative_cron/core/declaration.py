"""A declaration: what is written in settings for one task, understood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Generic, TypeVar

from .monitor import Monitor
from .operating import Operating
from .overlap import Policy
from .retry import Retry
from .schedule import Schedule
from .terms import DEFAULT_QUEUE, MICROSECOND, MILLISECOND, Target, Terms, digest_of

__all__ = [
    "DEFAULT_QUEUE",
    "MICROSECOND",
    "MILLISECOND",
    "Declaration",
    "Target",
    "Terms",
    "digest_of_set",
]

_T = TypeVar("_T")


class _Said(Generic[_T]):
    """What the terms of a declaration say, readable as the declaration's own.

    Args:
        read: gives it.
    """

    def __init__(self, read: Callable[[Terms], _T]) -> None:
        self._read = read

    def __get__(self, declaration: Declaration, _: object = None) -> _T:
        return self._read(declaration.terms)


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declared task.

    Args:
        name: its identity, letter for letter.
        terms: all else; tasks that differ in their names only have the same.
    """

    name: str
    terms: Terms

    cron = _Said[str](attrgetter("cron"))
    timezone = _Said[str](attrgetter("timezone"))
    schedule = _Said[Schedule](attrgetter("schedule"))
    target = _Said[Target](attrgetter("target"))
    retry = _Said[Retry](attrgetter("retry"))
    enabled = _Said[bool](attrgetter("enabled"))
    description = _Said[str](attrgetter("description"))
    overlap_policy = _Said[Policy](attrgetter("overlap_policy"))
    timeout = _Said[timedelta | None](attrgetter("timeout"))
    runner = _Said[str](attrgetter("runner"))
    atomic = _Said[bool](attrgetter("atomic"))
    queue = _Said[str](attrgetter("queue"))
    tags = _Said[tuple[str, ...]](attrgetter("tags"))
    meta = _Said[Mapping[str, Any]](attrgetter("meta"))
    operating = _Said[Operating](attrgetter("operating"))
    options = _Said[Mapping[str, Any]](attrgetter("options"))
    origin = _Said[str](attrgetter("origin"))
    entry = _Said[Mapping[str, Any] | None](attrgetter("entry"))
    monitor = _Said[Monitor | None](attrgetter("monitor"))
    dialect = _Said[str](attrgetter("dialect"))
    retry_delay = _Said[timedelta | None](attrgetter("retry_delay"))
    retry_delay_ms = _Said[int](attrgetter("retry_delay_ms"))

    def but(self, **changes: Any) -> Declaration:
        """Give the same declaration with other terms.

        Args:
            changes: fields of its terms.
        """
        return Declaration(self.name, replace(self.terms, **changes))

    @property
    def identity(self) -> tuple[str, str, timedelta | None]:
        """Give what an override is judged by (001 Configuration Comparison)."""
        return (self.cron, self.timezone, self.retry_delay)

    def meta_of(self, occurrence: datetime) -> dict[str, Any]:
        """Give the data that a run carries (CRON-20); its attempts carry the same.

        Args:
            occurrence: that the run is for.
        """
        at = occurrence.astimezone(UTC).isoformat().replace("+00:00", "Z")
        return {**self.meta, "cron_name": self.name, "cron_triggered_at": at}

    def as_data(self) -> dict[str, Any]:
        """Give the declaration as JSON-native data, without the callable."""
        return {"name": self.name, **self.terms.as_data()}

    def digest(self) -> str:
        """Give a short text that changes whenever anything declared for its name does."""
        return self.terms.row()[3]


def digest_of_set(declarations: Iterable[Declaration]) -> str:
    """Give a short text that changes whenever the registration set does.

    Args:
        declarations: the whole set; their order says nothing.
    """
    return digest_of("\n".join(sorted([f"{d.name}\0{d.terms.row()[3]}" for d in declarations])))
