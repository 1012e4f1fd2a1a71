"""A declaration: what is written in settings for one task, understood."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any

from .monitor import Monitor
from .operating import Operating
from .overlap import Policy
from .retry import Retry
from .schedule import Schedule
from .terms import (
    DEFAULT_QUEUE,
    MICROSECOND,
    MILLISECOND,
    Manner,
    Said,
    Target,
    Terms,
)

__all__ = [
    "DEFAULT_QUEUE",
    "MICROSECOND",
    "MILLISECOND",
    "Declaration",
    "Manner",
    "Target",
    "Terms",
]


@dataclass(slots=True, unsafe_hash=True)
class Declaration:
    """One declared task; nobody changes it, see ``Terms``.

    Args:
        name: its identity, letter for letter.
        terms: all else; tasks that differ in their names only have the same.
    """

    name: str
    terms: Terms

    cron = Said[str](attrgetter("terms.cron"))
    timezone = Said[str](attrgetter("terms.timezone"))
    schedule = Said[Schedule](attrgetter("terms.schedule"))
    dialect = Said[str](attrgetter("terms.dialect"))
    target = Said[Target](attrgetter("terms.manner.target"))
    retry = Said[Retry](attrgetter("terms.manner.retry"))
    enabled = Said[bool](attrgetter("terms.manner.enabled"))
    description = Said[str](attrgetter("terms.manner.description"))
    overlap_policy = Said[Policy](attrgetter("terms.manner.overlap_policy"))
    timeout = Said[timedelta | None](attrgetter("terms.manner.timeout"))
    runner = Said[str](attrgetter("terms.manner.runner"))
    atomic = Said[bool](attrgetter("terms.manner.atomic"))
    queue = Said[str](attrgetter("terms.manner.queue"))
    tags = Said[tuple[str, ...]](attrgetter("terms.manner.tags"))
    meta = Said[Mapping[str, Any]](attrgetter("terms.manner.meta"))
    operating = Said[Operating](attrgetter("terms.manner.operating"))
    options = Said[Mapping[str, Any]](attrgetter("terms.manner.options"))
    origin = Said[str](attrgetter("terms.manner.origin"))
    entry = Said[Mapping[str, Any] | None](attrgetter("terms.manner.entry"))
    monitor = Said[Monitor | None](attrgetter("terms.manner.monitor"))
    retry_delay = Said[timedelta | None](attrgetter("terms.manner.retry_delay"))
    retry_delay_ms = Said[int](attrgetter("terms.manner.retry_delay_ms"))

    def but(self, **changes: Any) -> Declaration:
        """Give the same declaration with other terms.

        Args:
            changes: fields of its terms, or of their manner.
        """
        return Declaration(self.name, self.terms.but(**changes))

    @property
    def identity(self) -> tuple[str, str, timedelta | None]:
        """Give what an override is judged by (001 Configuration Comparison)."""
        return (self.cron, self.timezone, self.retry_delay)

    def meta_of(self, occurrence: datetime) -> dict[str, Any]:
        """Give the data that a run carries (CRON-20), for itself; its attempts carry the same.

        Args:
            occurrence: that the run is for.
        """
        own = deepcopy(self.meta) if self.meta else self.meta
        return {**own, "cron_name": self.name, "cron_triggered_at": _spelled(occurrence)}

    def as_data(self) -> dict[str, Any]:
        """Give the declaration as JSON-native data, without the callable."""
        return {"name": self.name, **self.terms.as_data()}

    def digest(self) -> str:
        """Give a short text that changes whenever anything declared for its name does."""
        return self.terms.row()[3]


@lru_cache(maxsize=64)
def _spelled(occurrence: datetime) -> str:
    """Spell an occurrence; what starts at one instant mostly has the same one."""
    return occurrence.astimezone(UTC).isoformat().replace("+00:00", "Z")
