"""What is read of the rows: values, without the database; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from ...core.schedule import Schedule
from ...core.spread import offset_of
from ...cron import parse
from ...exceptions import DeclarativeCronError

_MICROSECOND = timedelta(microseconds=1)


class Ran(NamedTuple):
    """A run that was started. All instants are aware UTC.

    Args:
        id: of its row; runs are told in this order.
        task: name of the task.
        started_at: its start.
        finished_at: its end, or when it was found interrupted.
        outcome: as in the row.
        reason: as in the row.
        instance: where it ran, ``None`` where that row is gone.
        is_torn: whether its row was damaged, so that nothing can be said of its task.
    """

    id: int
    task: str
    started_at: datetime
    finished_at: datetime | None
    outcome: str
    reason: str
    instance: UUID | None
    is_torn: bool = False


class Act(NamedTuple):
    """What somebody did to a task.

    Args:
        at: when.
        task: its name.
        kind: as in the row; ``left_out`` where occurrences were never to run.
        until: end of a pause, ``None`` for one without; the last that was left out.
    """

    at: datetime
    task: str
    kind: str
    until: datetime | None


@dataclass(frozen=True)
class Entry:
    """One registration of a set.

    Args:
        data: as it is stored.
    """

    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Give the name of the task."""
        return str(self.data["name"])

    @property
    def is_enabled(self) -> bool:
        """Tell whether it is not paused by its declaration."""
        return bool(self.data.get("enabled", True))

    @property
    def is_fresh(self) -> bool:
        """Tell whether the state of the task began with this set."""
        return bool(self.data.get("fresh", False))

    @cached_property
    def identity(self) -> tuple[Any, Any, Any]:
        """Give what an override is judged by (001 Configuration Comparison)."""
        data = self.data
        return data.get("cron"), data.get("timezone"), data.get("retry_delay_us")

    @cached_property
    def record(self) -> dict[str, Any]:
        """Give the registration as records carry it."""
        told = {key: self.data[key] for key in _TOLD if key in self.data}
        delay = self.data.get("retry_delay_us", 0)
        by_policy = {"retry": "policy"} if delay is None else {}
        later = {"offset": self.offset} if self.offset else {}
        return told | {"retry_delay": _delay(delay)} | by_policy | later

    @cached_property
    def offset(self) -> timedelta:
        """Give by how much its occurrences are later than its expression says."""
        spread = self.data.get("spread", 0)
        try:
            return offset_of(self.name, timedelta(seconds=spread))
        except (TypeError, ValueError, OverflowError):
            return timedelta(0)

    def next_after(self, instant: datetime) -> datetime | None:
        """Give the next occurrence, ``None`` where there is none or the row is damaged.

        Args:
            instant: strictly after this.
        """
        return None if self._schedule is None else self._schedule.next_after(instant)

    @cached_property
    def _schedule(self) -> Schedule | None:
        data = self.data
        try:
            expression = parse(data["cron"], data.get("dialect", "posix"))
            zone = ZoneInfo(data["timezone"])
        except (DeclarativeCronError, ValueError, LookupError, TypeError):
            return None
        if expression.every is not None:
            return None  # It counts from the registration of the task, which is not kept here.
        gap, fold = data.get("gap", "skip"), data.get("fold", "first")
        return Schedule(expression, zone, gap, fold, offset=self.offset)


def _delay(value: Any) -> Any:
    """Give a length of time; what is none stays as it is, for the judge to object to."""
    try:
        return value * _MICROSECOND if isinstance(value, int) else value
    except OverflowError:
        return value


_TOLD = ("name", "cron", "timezone", "dialect", "gap", "fold", "overlap_policy")


class Registered(NamedTuple):
    """A set of registrations, from when it was made the active one.

    Args:
        at: when.
        after_run: id of the newest run before it.
        instance: who registered it, ``None`` where that row is gone.
        entries: the registrations by name.
        is_torn: whether its row was damaged, so that it may have had more of them.
    """

    at: datetime
    after_run: int
    instance: UUID | None
    entries: Mapping[str, Entry]
    is_torn: bool = False
