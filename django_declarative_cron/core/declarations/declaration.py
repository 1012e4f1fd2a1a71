"""What is said of a task beside its name, in two parts, for many tasks share it or one of them.

``Terms`` are all of it; their ``Manner`` is all that has nothing to do with when the task runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ...cron import CronExpression
from ..monitor import Monitor
from ..operating import Operating
from ..overlap import Policy
from ..retry import FixedDelay, Retry, RetryPolicy
from ..schedule import Schedule

MILLISECOND = timedelta(milliseconds=1)
MICROSECOND = timedelta(microseconds=1)

_SPELL = json.JSONEncoder(sort_keys=True).encode

_NOTHING: Mapping[str, Any] = {}
"""The same for all: of a hundred thousand declarations, most say nothing."""

_T = TypeVar("_T")

Row = tuple[str, str, timedelta | None, str, str]
"""Cron, time zone, retry delay, digest and origin: what a row is compared by."""

DEFAULT_QUEUE = "default"
"""The queue of runs that name none (002 Field Definitions)."""


@dataclass(frozen=True, slots=True)
class Target:
    """What runs: a callable, with the text it is known by.

    Args:
        text: dotted path, qualified name, or the words of a management command.
        function: what is called; it may be ``async`` and may take ``run``.
        args: positional arguments, JSON-native.
        is_command: ``True`` for a management command.
        is_importable: another process finds it by its text.
        is_from_outside: its text came over HTTP, so that nothing is ever imported for it.
        runner: that it asks for by its kind, ``None`` where any will do.
    """

    text: str
    function: Callable[..., Any] = field(compare=False)
    args: tuple[Any, ...] = ()
    is_command: bool = False
    is_importable: bool = field(default=True, compare=False)
    is_from_outside: bool = field(default=False, compare=False)
    runner: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Manner:
    """What runs, and how, whenever that is: most tasks of a project have one of a few.

    Args:
        target: what runs.
        retry: the rule that dates the next attempt.
        enabled: ``False`` works like a pause.
        description: words for people.
        overlap_policy: what happens to an occurrence during the task's own run.
        timeout: the longest a run may take, ``None`` for any time.
        runner: where runs are called: ``thread``, ``process``, ``django_tasks``.
        atomic: the run's own database work and its result are one transaction.
        queue: a name for whoever shares the work out.
        tags: words for filtering.
        meta: data that every run carries, JSON-native.
        operating: how the task is operated.
        options: the object ``options`` as it was written, JSON-native.
        origin: where it is declared, ``settings`` or ``http``.
        entry: the object it was read from, where its row keeps that.
        monitor: who watches it from outside; of its process only, so that no row has an address.
    """

    target: Target
    retry: Retry
    enabled: bool = True
    description: str = ""
    overlap_policy: Policy = "coalesce"
    timeout: timedelta | None = None
    runner: str = "thread"
    atomic: bool = False
    queue: str = DEFAULT_QUEUE
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    operating: Operating = Operating()  # noqa: RUF009 - frozen
    options: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    origin: str = "settings"
    entry: Mapping[str, Any] | None = None
    monitor: Monitor | None = field(default=None, compare=False)
    _known_digest: str = field(default="", init=False, compare=False, repr=False)

    @property
    def retry_delay(self) -> timedelta | None:
        """Return the fixed delay from the end of a failed run, ``None`` beside a policy."""
        return self.retry.delay if isinstance(self.retry, FixedDelay) else None

    @property
    def retry_delay_ms(self) -> int:
        """Return the first retry delay in milliseconds, as the log contract spells it."""
        delay = self.retry_delay
        if delay is None:
            policy = self.retry if isinstance(self.retry, RetryPolicy) else RetryPolicy()
            delay = policy.initial_interval
        return delay // MILLISECOND

    def digest(self) -> str:
        """Return a short text that changes whenever any of it does."""
        if not self._known_digest:
            # The one thing about it that comes later, and only because it takes its time.
            object.__setattr__(self, "_known_digest", digest_of(_SPELL(self._what_is_said())))
        return self._known_digest

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON-native data, without the callable."""
        delay, retry = self.retry_delay, self.retry
        return {
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
            **self.operating.as_data(),
            # Only where it is kept, so that the digests of settings do not depend on it.
            **({} if self.entry is None else {"entry": dict(self.entry)}),
        }

    def _what_is_said(self) -> list[Any]:
        """Return all of ``as_data`` by place instead of by name, which is spelled in less time."""
        delay, retry = self.retry_delay, self.retry
        return [
            None if delay is None else delay // MICROSECOND,
            retry.as_data() if isinstance(retry, RetryPolicy) else None,
            *(self.target.text, self.target.args, self.target.is_command),
            *(self.enabled, self.description, self.overlap_policy),
            None if self.timeout is None else self.timeout.total_seconds(),
            *(self.runner, self.atomic, self.queue, self.tags, self.meta, self.options),
            *(self.operating.as_data(), self.entry),
        ]


class Said(property, Generic[_T]):
    """What a part of something says, readable as its own.

    Args:
        read: gives it; where that is an ``attrgetter``, no code of ours runs at each access.
    """

    if TYPE_CHECKING:

        def __init__(self, read: Callable[[Any], _T]) -> None: ...

        def __get__(self, whole: Any, kind: type | None = None, /) -> _T: ...  # type: ignore[override]


@dataclass(slots=True, eq=False)
class Terms:
    """Everything that is declared for a task but its name: when it runs, what, and how.

    Nobody changes them. That they could be changed is for speed: where each task has an
    expression of its own, to make what cannot takes four times as long.

    Args:
        expression: parsed; its text is as it was written, and another spacing is another text.
        rules: the schedule of some expression in the same zone, by the same rules.
        manner: what runs, and how.
    """

    expression: CronExpression
    rules: Schedule
    manner: Manner
    _known_schedule: Schedule | None = field(default=None, init=False, repr=False)
    _known_row: Row | None = field(default=None, init=False, repr=False)

    retry = Said[Retry](attrgetter("manner.retry"))
    overlap_policy = Said[Policy](attrgetter("manner.overlap_policy"))
    operating = Said[Operating](attrgetter("manner.operating"))

    @classmethod
    def of(cls, schedule: Schedule, manner: Manner) -> Terms:
        """Return the terms of a schedule."""
        return cls(schedule.expression, schedule, manner)

    @property
    def schedule(self) -> Schedule:
        """Return when it runs; it is put together when somebody asks, as few do in a start."""
        if self.rules.expression is self.expression:
            return self.rules
        if self._known_schedule is None:
            self._known_schedule = self.rules.of(self.expression)
        return self._known_schedule

    @property
    def cron(self) -> str:
        """Return the expression as it was written."""
        return self.expression.text

    @property
    def timezone(self) -> str:
        """Return the IANA name of the zone."""
        return self.rules.zone.key

    @property
    def dialect(self) -> str:
        """Return the dialect that the expression is written in."""
        return self.expression.dialect

    def but(self, *, schedule: Schedule | None = None, **changes: Any) -> Terms:
        """Return the same terms with something else in them."""
        manner = replace(self.manner, **changes) if changes else self.manner
        return Terms.of(schedule or self.schedule, manner)

    def at(self, expression: CronExpression) -> Terms:
        """Return the same terms with another expression."""
        return Terms(expression, self.rules, self.manner)

    def row(self) -> Row:
        """Return what a row says that was written by these terms."""
        if self._known_row is None:
            manner, cron, zone = self.manner, self.cron, self.timezone
            # The last is the only one that may be any text.
            digest = digest_of("\0".join((*self._said_beside(), cron)))
            self._known_row = (cron, zone, manner.retry_delay, digest, manner.origin)
        return self._known_row

    def digest_beside(self) -> str:
        """Return a short text that changes whenever any of them but the expression does."""
        return digest_of("\0".join(self._said_beside()))

    def _said_beside(self) -> tuple[str, ...]:
        rules = self.rules
        return (self.manner.digest(), rules.zone.key, self.dialect, rules.gap, rules.fold)

    def as_data(self) -> dict[str, Any]:
        """Return them as JSON-native data, without the callable."""
        return {
            "cron": self.cron,
            "timezone": self.timezone,
            "dialect": self.dialect,
            "gap": self.rules.gap,
            "fold": self.rules.fold,
            **self.manner.as_data(),
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Terms):
            return NotImplemented
        mine, theirs = (self.cron, self.schedule), (other.cron, other.schedule)
        return mine == theirs and self.manner == other.manner

    def __hash__(self) -> int:
        return hash((self.cron, self.schedule))


def digest_of(text: str) -> str:
    """Return a short text that changes whenever a text does."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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
        """Return the same declaration with other terms."""
        return Declaration(self.name, self.terms.but(**changes))

    @property
    def identity(self) -> tuple[str, str, timedelta | None]:
        """Return what an override is judged by (001 Configuration Comparison)."""
        return (self.cron, self.timezone, self.retry_delay)

    def meta_of(self, occurrence: datetime) -> dict[str, Any]:
        """Return the data that a run carries (CRON-20), for itself; its attempts carry the same."""
        own = deepcopy(self.meta) if self.meta else self.meta
        return {**own, "cron_name": self.name, "cron_triggered_at": _spelled(occurrence)}

    def as_data(self) -> dict[str, Any]:
        """Return the declaration as JSON-native data, without the callable."""
        return {"name": self.name, **self.terms.as_data()}

    def digest(self) -> str:
        """Return a short text that changes whenever anything declared for its name does."""
        return self.terms.row()[3]


@lru_cache(maxsize=64)
def _spelled(occurrence: datetime) -> str:
    """Spell an occurrence; what starts at one instant mostly has the same one."""
    return occurrence.astimezone(UTC).isoformat().replace("+00:00", "Z")


def digest_of_set(declarations: Iterable[Declaration]) -> str:
    """Return a short text that changes whenever a registration set does; the order says nothing."""
    lines = [f"{each.name}\0{each.digest()}" for each in declarations]
    return digest_of("\n".join(sorted(lines)))
