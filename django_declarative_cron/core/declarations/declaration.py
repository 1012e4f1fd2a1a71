"""One declared task, and the text that changes whenever its declaration does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ..monitor import Monitor
from ..overlap import POLICY_OF_SHORT_FORM, Policy
from ..retry import FixedDelay, Retry, RetryPolicy
from ..schedule import Schedule
from .values import in_short

SECOND: Final = timedelta(seconds=1)
MILLISECOND: Final = timedelta(milliseconds=1)
MICROSECOND: Final = timedelta(microseconds=1)

LONGEST_SPREAD: Final = timedelta(days=1)

DEFAULT_QUEUE: Final = "default"
"""The queue of runs that name none (002 Field Definitions)."""

_AS_JSON: Final = json.JSONEncoder(sort_keys=True).encode
_EMPTY: Final[Mapping[str, Any]] = {}
"""One empty dict for all declarations, because most of them have no metadata and no options."""

Columns = tuple[str, str, timedelta | None, str, str]
"""Cron, time zone, retry delay, digest and origin of a row."""


@dataclass(frozen=True, slots=True)
class Target:
    """A callable, with the text it is known by.

    Args:
        text: dotted path, qualified name, or the words of a management command.
        function: the callable; it may be ``async`` and may take ``run``.
        args: positional arguments, JSON-native.
        is_command: ``True`` for a management command.
        is_importable: another process finds it by its text.
        is_from_outside: its text came over HTTP, so nothing is ever imported for it.
        runner: the runner that its kind requires, ``None`` for any.
    """

    text: str
    function: Callable[..., Any] = field(compare=False)
    args: tuple[Any, ...] = ()
    is_command: bool = False
    is_importable: bool = field(default=True, compare=False)
    is_from_outside: bool = field(default=False, compare=False)
    runner: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Operating:
    """Options for the operation of a task: deterministic jitter, catch-up, calendars, pauses.

    Args:
        spread: its occurrences are delayed by less than this, always by the same time.
        catch_up_window: how late an occurrence may start, ``None`` for any time.
        exclude_calendars: names of the calendars; on their days there are no occurrences.
        pause_after_failures: how many failures in a row pause it, ``None`` for never.
    """

    spread: timedelta = timedelta(0)
    catch_up_window: timedelta | None = None
    exclude_calendars: tuple[str, ...] = ()
    pause_after_failures: int | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the keys that are set as JSON-native data, durations in seconds."""
        said: dict[str, Any] = {
            "spread": self.spread.total_seconds() or None,
            "catch_up_window": None
            if self.catch_up_window is None
            else self.catch_up_window.total_seconds(),
            "exclude_calendars": list(self.exclude_calendars) or None,
            "pause_after_failures": self.pause_after_failures,
        }
        return {key: value for key, value in said.items() if value is not None}

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Operating:
        """Return the value that ``as_data`` was called on.

        Raises:
            ValueError | TypeError | OverflowError: the row is damaged.
        """
        window, exclude = data.get("catch_up_window"), data.get("exclude_calendars", ())
        if isinstance(exclude, str) or not all(isinstance(each, str) for each in exclude):
            raise ValueError(f"stored names of calendars are none: {in_short(exclude)}")
        most = data.get("pause_after_failures")
        if most is not None and (not isinstance(most, int) or most < 1):
            raise ValueError(f"stored number of failures is none: {in_short(most)}")
        return cls(
            spread=timedelta(seconds=data.get("spread", 0)),
            catch_up_window=None if window is None else timedelta(seconds=window),
            exclude_calendars=tuple(exclude),
            pause_after_failures=most,
        )


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declared task.

    Args:
        name: its identity, letter for letter.
        schedule: when it runs.
        target: the callable that it runs.
        retry: the rule that dates the next attempt.
        enabled: ``False`` works like a pause.
        description: words for people.
        overlap_policy: treatment of an occurrence during the task's own run.
        timeout: the longest a run may take, ``None`` for any time.
        runner: where runs are called: ``thread``, ``process``, ``django_tasks``.
        atomic: the run's own database work and its result are one transaction.
        queue: a name for external workers and engines.
        tags: words for filtering.
        meta: data that every run carries, JSON-native.
        operating: how the task is operated.
        options: the object ``options`` as it was written, JSON-native.
        origin: where it is declared, ``settings`` or ``http``.
        entry: the object it was read from, where its row keeps that.
        monitor: where its check-ins go; rows never store it, so they contain no addresses.
        digest: a short text that changes whenever any of the above except name, origin and
            monitor does.
    """

    name: str
    schedule: Schedule
    target: Target
    retry: Retry
    enabled: bool = True
    description: str = ""
    overlap_policy: Policy = POLICY_OF_SHORT_FORM
    timeout: timedelta | None = None
    runner: str = "thread"
    atomic: bool = False
    queue: str = DEFAULT_QUEUE
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    operating: Operating = Operating()
    options: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    origin: str = "settings"
    entry: Mapping[str, Any] | None = None
    monitor: Monitor | None = field(default=None, compare=False)
    digest: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        always, operating = self._always(), self.operating.as_data()
        # A list takes half as long as an object with sorted keys.
        digest = digest_of(_AS_JSON([*always.values(), operating, self.entry]))
        object.__setattr__(self, "digest", digest)

    def __hash__(self) -> int:
        # Metadata and options are dicts.
        return hash((self.name, self.digest))

    @property
    def cron(self) -> str:
        """Return the expression as it was written."""
        return self.schedule.expression.text

    @property
    def timezone(self) -> str:
        """Return the IANA name of the zone."""
        return self.schedule.zone.key

    @property
    def dialect(self) -> str:
        """Return the dialect that the expression is written in."""
        return self.schedule.expression.dialect

    @property
    def retry_delay(self) -> timedelta | None:
        """Return the fixed delay from the end of a failed run, ``None`` for a policy."""
        return self.retry.delay if isinstance(self.retry, FixedDelay) else None

    @property
    def retry_delay_ms(self) -> int:
        """Return the first retry delay in milliseconds, as the log contract spells it."""
        retry = self.retry
        delay = retry.delay if isinstance(retry, FixedDelay) else retry.initial_interval
        return delay // MILLISECOND

    @property
    def identity(self) -> tuple[str, str, timedelta | None]:
        """Return the values that distinguish an override (001 Configuration Comparison)."""
        return (self.cron, self.timezone, self.retry_delay)

    @property
    def columns(self) -> Columns:
        """Return the columns of a row that was written for exactly this declaration."""
        return (self.cron, self.timezone, self.retry_delay, self.digest, self.origin)

    def meta_of(self, occurrence: datetime) -> dict[str, Any]:
        """Return a copy of the data that every attempt of a run carries (CRON-20)."""
        own = deepcopy(self.meta) if self.meta else self.meta
        # To the microsecond, so that it is the very instant of ``run.scheduled_for``.
        triggered = occurrence.astimezone(UTC).isoformat().replace("+00:00", "Z")
        return {**own, "cron_name": self.name, "cron_triggered_at": triggered}

    def as_data(self) -> dict[str, Any]:
        """Return the declaration as JSON-native data, without the callable."""
        # The entry is included only where it is stored, so digests of settings ignore it.
        entry = {} if self.entry is None else {"entry": dict(self.entry)}
        return {"name": self.name, **self._always(), **self.operating.as_data(), **entry}

    def _always(self) -> dict[str, Any]:
        """Return the keys that the data of every declaration has, except the name."""
        delay, retry, schedule = self.retry_delay, self.retry, self.schedule
        return {
            "cron": self.cron,
            "timezone": self.timezone,
            "dialect": self.dialect,
            "gap": schedule.gap,
            "fold": schedule.fold,
            "retry_delay_us": None if delay is None else delay // MICROSECOND,
            "retry": retry.as_data() if isinstance(retry, RetryPolicy) else None,
            "callback": self.target.text,
            "args": list(self.target.args),
            "command": self.target.is_command,
            "enabled": self.enabled,
            "description": self.description,
            "overlap_policy": self.overlap_policy,
            "timeout": None if self.timeout is None else self.timeout.total_seconds(),
            "runner": self.runner,
            "atomic": self.atomic,
            "queue": self.queue,
            "tags": list(self.tags),
            "meta": dict(self.meta),
            "options": dict(self.options),
        }


def offset_of(name: str, spread: timedelta) -> timedelta:
    """Return the delay of a task's occurrences; it is always the same for one name."""
    seconds = spread // SECOND
    if seconds < 1:
        return timedelta(0)
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % seconds * SECOND


def digest_of(text: str) -> str:
    """Return a short text that changes whenever a text does."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def digest_of_set(declarations: Iterable[Declaration]) -> str:
    """Return a short text that changes with a registration set, independent of its order."""
    lines = [f"{each.name}\0{each.digest}" for each in declarations]
    return digest_of("\n".join(sorted(lines)))


OPERATING: Final = tuple(each.name for each in fields(Operating))
"""The keys of an entry that ``Operating`` has."""
