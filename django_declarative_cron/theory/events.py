"""Event records of a trace: their format, and the conversion to events.

A record is a mapping: ``{"at": datetime, "event": "RS", "task": "a"}``.

- Actions: ``IS``, ``IEs``, ``IEf`` with ``registrations`` (a list of mappings with ``name``,
  ``cron``, ``retry_delay``, ``timezone``), ``SS``, ``SE``, and ``RS``, ``REs``, ``REf`` with
  ``task``.
- ``Crash``; ``Freeze`` with ``until``.
- Pulses: ``Due`` and ``RetryDue`` with ``task``, ``Tick``.
- ``position`` on consecutive records with one ``at`` puts them at one position.

Optional: ``valid`` on ``IEs`` and ``IEf`` states whether the list was valid, where the
record does not show it (a callback that cannot be imported); ``cause: "storage"`` on ``IEf``;
``retry_at`` on ``REf`` for a backoff, ``None`` for no retry; ``handed`` on ``RS``, ``REs`` and
``REf`` of a run that a worker took over from the scheduler; ``cron`` on ``Due`` to distinguish
two schedules of one name; ``dialect``, ``gap``, ``fold``, ``overlap_policy``,
``offset`` and ``leaves_out`` in a registration. Other keys are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, get_args

from ..core.declarations.values import nearest
from ..core.overlap import POLICY_OF_SHORT_FORM, Policy

Kind = Literal[
    "IS", "IEs", "IEf", "SS", "SE", "RS", "REs", "REf", "Crash", "Freeze", "Due", "Tick", "RetryDue"
]
Record = Mapping[str, Any]

KINDS: Final = get_args(Kind)
ACTIONS: Final = frozenset({"IS", "IEs", "IEf", "SS", "SE", "RS", "REs", "REf"})
PULSES: Final = frozenset({"Due", "Tick", "RetryDue"})
OF_A_TASK: Final = frozenset({"RS", "REs", "REf", "Due", "RetryDue"})
OF_A_LIST: Final = frozenset({"IS", "IEs", "IEf"})
_OF_A_RUN: Final = frozenset({"RS", "REs", "REf"})

GOVERNED_POLICY: Final[Policy] = "coalesce"
"""The one overlap policy that the theory knows."""

_SHORTEST_DELAY: Final = timedelta(milliseconds=1)
_LONGEST_NAME: Final = 255
_NO_OFFSET: Final = timedelta(0)
_TEXTS: Final = (
    *("cron", "timezone", "dialect", "gap", "fold", "overlap_policy", "retry", "leaves_out"),
)


class TraceError(ValueError):
    """An invalid record; the message names the record and the fix.

    Args:
        index: of the record in the trace, from 0.
        reason: the error and its fix.
    """

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"record {index}: {reason}")
        self.index = index
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Registration:
    """A task of the theory; equal if name, schedule and retry delay are equal.

    Args:
        cron: the expression, ``None`` where the trace states the dues.
        retry_delay: ``None`` where the trace states the retries.
        gap: the handling of a local minute that does not exist.
        fold: which passes of a local minute that happens twice count.
        overlap_policy: the theory governs ``coalesce``.
        retry: ``policy`` if a policy sets the retries; the theory only has fixed delays.
        offset: the delay of its occurrences after those of the expression.
        leaves_out: ``yes`` where occurrences are excluded that are pending in the theory.
    """

    name: str
    cron: str | None = None
    timezone: str = "UTC"
    retry_delay: timedelta | None = None
    offset: timedelta = timedelta(0)
    dialect: str = field(default="posix", compare=False)
    gap: str = field(default="skip", compare=False)
    fold: str = field(default="first", compare=False)
    overlap_policy: str = field(default=POLICY_OF_SHORT_FORM, compare=False)
    retry: str = field(default="", compare=False)
    leaves_out: str = field(default="", compare=False)

    @property
    def governed(self) -> bool:
        """Return whether the theory governs this task.

        It knows one overlap policy (docs/semantics.md, "Overlap policies"), retries after a fixed
        delay, and no excluded occurrences.
        """
        by_policy = self.retry == "policy" or bool(self.leaves_out)
        return self.overlap_policy == GOVERNED_POLICY and not by_policy


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a position.

    Args:
        registration: that task, as the trace knew it then.
        registrations: the list of an initialisation.
        fault: the error in that list, ``None`` for a valid one.
        storage_failed: the storage was unavailable; the cause of an ``IEf`` inside a freeze.
        cron: the schedule of a stated due, if the name has several.
        retry_at: the due time of the retry of a failure; for a pulse, its planned time.
        retry_stated: the record has ``retry_at``.
        governed: ``False`` for a task that the theory does not govern.
        handed: the run was taken over by a process outside the scheduler.
    """

    kind: Kind
    task: str | None = None
    registration: Registration | None = None
    registrations: tuple[Registration, ...] = ()
    fault: str | None = None
    storage_failed: bool = False
    until: datetime | None = None
    cron: str | None = None
    retry_at: datetime | None = None
    retry_stated: bool = False
    governed: bool = True
    handed: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    index: int
    at: datetime
    label: int | None
    event: Event


def read(index: int, record: Record) -> Read:
    """Read one record."""
    if not isinstance(record, Mapping):
        raise TraceError(index, f"must be a mapping, not {type(record).__name__}")
    at = _instant(index, record, "at")
    label = record.get("position")
    if label is not None and (not isinstance(label, int) or label < 0):
        raise TraceError(index, f"position must be a whole number from 0, got {label!r}")
    return Read(index, at, label, _event(index, record, at))


def _event(index: int, record: Record, at: datetime) -> Event:
    kind = record.get("event")
    if kind is None or kind not in KINDS:
        raise TraceError(index, _unknown(kind))
    if kind in OF_A_TASK:
        return _of_a_task(index, record, kind)
    if kind in OF_A_LIST:
        return _of_a_list(index, record, kind)
    if kind == "Freeze":
        return _freeze(index, record, at)
    return Event(kind)


def _unknown(kind: object) -> str:
    guess = nearest(kind, KINDS) if isinstance(kind, str) else None
    hint = f'; did you mean "{guess}"?' if guess else f", use one of {', '.join(KINDS)}"
    return f"unknown event {kind!r}{hint}"


def _of_a_task(index: int, record: Record, kind: Kind) -> Event:
    task = record.get("task")
    if not isinstance(task, str):
        raise TraceError(index, f'{kind} needs "task", the name of the task, got {task!r}')
    handed = kind in _OF_A_RUN and record.get("handed") is True
    if kind == "REf" and "retry_at" in record:
        retry_at = None if record["retry_at"] is None else _instant(index, record, "retry_at")
        return Event(kind, task, retry_at=retry_at, retry_stated=True, handed=handed)
    cron = record.get("cron") if kind == "Due" else None
    return Event(kind, task, cron=cron, handed=handed)


def _freeze(index: int, record: Record, at: datetime) -> Event:
    until = _instant(index, record, "until")
    if until < at:
        raise TraceError(index, f'a Freeze ends after it starts: "until" {until} is before {at}')
    return Event("Freeze", until=until)


def _of_a_list(index: int, record: Record, kind: Kind) -> Event:
    entries = record.get("registrations")
    if not isinstance(entries, (list, tuple)):
        raise TraceError(index, f'{kind} needs "registrations", a list, got {entries!r}')
    registrations, faults = [], []
    for number, entry in enumerate(entries):
        registration, fault = _registration(entry)
        if registration is not None:
            registrations.append(registration)
        if fault:
            faults.append(f"entry {number}: {fault}")
    if len({each.name for each in registrations}) < len(registrations):
        faults.append("a name comes twice")
    if record.get("valid") is False:
        faults.append("the record says so")
    return Event(
        kind,
        registrations=tuple(registrations),
        fault="; ".join(faults) if record.get("valid") is not True and faults else None,
        storage_failed=record.get("cause") == "storage",
    )


def _registration(entry: object) -> tuple[Registration | None, str | None]:
    """Read an entry as far as it can be read: a list that is none to accept is no bad record."""
    if not isinstance(entry, Mapping):
        return None, f"a {type(entry).__name__}, not a mapping"
    name, delay = entry.get("name"), entry.get("retry_delay")
    if not isinstance(name, str):
        return None, f"name {name!r} is not a text"
    faults = [fault for fault in (_name_fault(name), _delay_fault(delay)) if fault]
    said = {key: entry[key] for key in _TEXTS if entry.get(key) is not None}
    texts = {key: text for key, text in said.items() if isinstance(text, str)}
    faults += [f"{key} {said[key]!r} is not a text" for key in said if key not in texts]
    delay = delay if isinstance(delay, timedelta) else None
    offset = entry.get("offset", _NO_OFFSET)
    if not isinstance(offset, timedelta):
        faults, offset = [*faults, f"offset {offset!r} is not a timedelta"], _NO_OFFSET
    registration = Registration(name, retry_delay=delay, offset=offset, **texts)
    return registration, "; ".join(faults) or None


def _name_fault(name: str) -> str | None:
    if not name or len(name) > _LONGEST_NAME:
        return f"a name has 1 to {_LONGEST_NAME} characters"
    return None if name.isprintable() else f"name {name!r} has control characters"


def _delay_fault(delay: object) -> str | None:
    if delay is None:
        return None
    if not isinstance(delay, timedelta):
        return f"retry_delay {delay!r} is not a timedelta"
    if delay and delay < _SHORTEST_DELAY:
        return f"retry_delay {delay} is below a millisecond"
    return None


def _instant(index: int, record: Record, key: str) -> datetime:
    value = record.get(key)
    if not isinstance(value, datetime):
        raise TraceError(index, f'"{key}" must be an aware datetime, got {value!r}')
    if value.tzinfo is UTC:
        return value
    if value.utcoffset() is None:
        raise TraceError(index, f'"{key}" {value} is naive: say its zone, for example tzinfo=UTC')
    return value.astimezone(UTC)
