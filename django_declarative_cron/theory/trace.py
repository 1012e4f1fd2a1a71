"""Traces: event records, and the pulses that they omit, as numbered positions.

How stated and derived pulses are combined:

- *Dues.* A trace that states a ``Due`` of any task registered with a cron expression states all
  dues itself, and none is derived. For any other trace the dues are derived from the cron
  expressions of its registrations; a registration without ``cron`` has the stated dues.
  ``derived_events`` (``"stated"``, ``"made"``) sets this in advance; then the trace is read once.
- *Retries* follow from the failures: the end of a failed run and the retry delay of its task. A
  stated ``RetryDue`` only gives the pulse its position; it counts by itself where the task has no
  ``retry_delay``.
- *Minute starts* are derived from the clock; a stated ``Tick`` gives one a position, and a
  ``Tick`` at the end marks the end of the trace.
- A derived pulse has its own instant and its own position, before any record that is not earlier.
  If that instant has only records of pulses, it shares their position. All pulses derived for
  one instant share a position.

Timestamps never decrease. A record up to a millisecond earlier than its predecessor gets the
predecessor's instant: recorders move actions by microseconds to keep their instants distinct.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from .derived_events import PulseQueue, Schedules, schedule_of
from .events import ACTIONS, OF_A_LIST, PULSES, Event, Read, Record, Registration, TraceError, read
from .operators import Moment, Mountain

Pulses = Literal["auto", "stated", "made"]
SetBack = Literal["refuse", "hold"]

_MOVED = timedelta(milliseconds=1)
_TELLING = ("Due", *OF_A_LIST)


@dataclass(frozen=True, slots=True)
class Position:
    """One position of a trace.

    Args:
        events: its events, derived pulses first.
        minute: the newest ``MinuteStart``.
        came: at an ``IEs``, the tasks the list before did not have, with their newest due.
        mountains: those of them whose ``MountainDue`` holds.
        exhausted: tasks that were due once and never will be again.
    """

    number: int
    at: datetime
    events: tuple[Event, ...]
    kinds: frozenset[str]
    minute: datetime
    came: Mapping[Registration, Moment | None]
    mountains: Collection[Registration] = ()
    exhausted: tuple[Registration, ...] = ()

    @property
    def moment(self) -> Moment:
        return Moment(self.at, self.number)

    @property
    def actions(self) -> list[Event]:
        return [event for event in self.events if event.kind in ACTIONS]

    def has(self, kind: str) -> bool:
        return kind in self.kinds

    def each(self, *kinds: str) -> list[Event]:
        """Return the events of some kinds; for tasks, only those that the theory governs."""
        if self.kinds.isdisjoint(kinds):
            return []
        return [event for event in self.events if event.kind in kinds and event.governed]


def positions(
    records: Iterable[Record],
    *,
    schedules: Schedules = schedule_of,
    pulses: Pulses = "auto",
    set_back: SetBack = "refuse",
) -> Iterator[Position]:
    """Yield the positions of a trace, in order.

    Args:
        records: event records, oldest first.
        schedules: finds the schedule of a registration.
        pulses: whether dues are stated or derived, as described above.
        set_back: ``hold`` moves a record that is earlier than its predecessor to the
            predecessor's instant, as no minute occurs twice; otherwise it is rejected.

    Raises:
        TraceError: a record is invalid or out of order.
    """
    if pulses == "auto":
        records = list(records)
        pulses = "stated" if _states_its_dues(records) else "made"
    stream = _Stream(PulseQueue(schedules, stated=pulses == "stated"))
    for group in _grouped(_in_order(records, set_back)):
        yield from stream.follow(group)


def _states_its_dues(records: Iterable[Record]) -> bool:
    stated: set[str | None] = set()
    with_cron: set[str | None] = set()
    for index, record in enumerate(records):
        if isinstance(record, Mapping) and record.get("event") in _TELLING:
            event = read(index, record).event
            stated.update({event.task} if event.kind == "Due" else ())
            with_cron.update(each.name for each in event.registrations if each.cron is not None)
    return not stated.isdisjoint(with_cron)


def _in_order(records: Iterable[Record], set_back: SetBack) -> Iterator[Read]:
    last: datetime | None = None
    for index, record in enumerate(records):
        found = read(index, record)
        if last is not None and found.at < last:
            if set_back == "refuse" and last - found.at > _MOVED:
                raise TraceError(
                    index,
                    f"{found.at} is before the record before it ({last}): sort the records by "
                    'their instants, or pass set_back="hold" where the clock was set back',
                )
            found = replace(found, at=last)
        last = found.at
        yield found


def _grouped(records: Iterable[Read]) -> Iterator[list[Read]]:
    """Put the records of one position together."""
    group: list[Read] = []
    highest = -1
    for found in records:
        if found.label is not None and group and found.label == group[-1].label:
            if found.at != group[-1].at:
                raise TraceError(found.index, f"position {found.label} has two instants")
            group.append(found)
            continue
        if found.label is not None and found.label <= highest:
            raise TraceError(
                found.index, f"position {found.label} is over: keep its records together"
            )
        highest = highest if found.label is None else found.label
        if group:
            yield group
        group = [found]
    if group:
        yield group


class _Stream:
    """The state between positions."""

    def __init__(self, pulses: PulseQueue) -> None:
        self._pulses = pulses
        self._mountain = Mountain()
        self._number = 0
        self._frozen_until: datetime | None = None
        self._registered: dict[str, Registration] = {}
        self._known: dict[str, Registration] = {}
        self._run_as: dict[str, Registration] = {}

    def follow(self, group: list[Read]) -> Iterator[Position]:
        """Yield the pulses up to a record, then its own position."""
        at, stated = group[0].at, [found.event for found in group]
        pulses_only = all(event.kind in PULSES for event in stated)
        joined: list[Event] = []
        while (due_at := self._pulses.next_at()) is not None and due_at <= at:
            pulses = self._pulses.take(due_at)
            if due_at == at and pulses_only:
                joined += pulses
            else:
                yield self._position(due_at, pulses)
        resolved = [self._resolved(event, at) for event in stated]
        yield self._position(at, [*joined, *resolved])

    def _position(self, at: datetime, events: list[Event]) -> Position:
        moment = Moment(at, self._number)
        self._number += 1
        self._note_pulses(events, moment)
        came: dict[Registration, Moment | None] = {}
        exhausted = []
        for event in events:
            if event.until is not None:
                self._frozen_until = max(event.until, self._frozen_until or event.until)
            elif event.kind == "IEs":
                came |= self._registers(event, at)
                exhausted += [each for each in came if self._pulses.look_ahead(each, at)]
            elif event.registration is not None:
                exhausted += self._looks_ahead(event, at)
        mountains = {each for each, due in came.items() if self._mountain.holds(due, at)}
        minute = self._mountain.minute_of(at)
        kinds = frozenset([event.kind for event in events])
        return Position(
            *(moment.position, at, tuple(events), kinds),
            *(minute, came, mountains, tuple(exhausted)),
        )

    def _note_pulses(self, events: list[Event], moment: Moment) -> None:
        """Remember minute starts and stated dues before anything is read at the position."""
        for event in events:
            starts_minute = not moment.at.second and not moment.at.microsecond
            if event.kind == "Tick" or (event.kind == "Due" and starts_minute):
                self._mountain.start_minute(moment.at)
            if event.kind == "Due" and not self._pulses.makes(event.registration):
                self._pulses.note(event, moment)

    def _registers(self, event: Event, at: datetime) -> dict[Registration, Moment | None]:
        before, after = self._registered, {each.name: each for each in event.registrations}
        overridden = [
            self._known[name] for name, each in after.items() if self._known.get(name, each) != each
        ]
        came = [each for name, each in after.items() if before.get(name) != each]
        self._pulses.register(after.values(), overridden, came, at)
        self._registered = after
        self._known |= after
        return {each: self._pulses.newest(each, at) for each in came}

    def _looks_ahead(self, event: Event, at: datetime) -> list[Registration]:
        """See to the pulses that follow a start or a failure."""
        assert event.registration is not None
        if event.kind == "REf" and event.retry_at is not None:
            self._pulses.expect_retry(event.registration, event.retry_at)
        if event.kind == "RS" and self._pulses.look_ahead(event.registration, at):
            return [event.registration]
        return []

    # --- the owner of an event ---

    def _resolved(self, event: Event, at: datetime) -> Event:
        """Return an event with its task, as registered at that time."""
        if event.kind in OF_A_LIST:
            return self._judged(event, at)
        if event.task is None:
            return event
        task = self._known.setdefault(event.task, Registration(event.task))
        match event.kind:
            case "Due":
                return self._due(event, task)
            case "RetryDue":
                return replace(event, registration=task if task.retry_delay is None else None)
            case "RS":
                self._run_as[event.task] = task
        task = self._run_as.get(event.task, task)
        retry_at = _retry_at(event, task, at) if event.kind == "REf" else None
        governed, handed = task.governed, event.handed
        return Event(
            event.kind, event.task, task, retry_at=retry_at, governed=governed, handed=handed
        )

    def _judged(self, event: Event, at: datetime) -> Event:
        """Return an event with the validity of its list and the availability of the storage."""
        frozen = self._frozen_until is not None and at < self._frozen_until
        return replace(
            event,
            fault=event.fault or self._pulses.fault(event.registrations),
            storage_failed=event.storage_failed or frozen,
        )

    def _due(self, event: Event, task: Registration) -> Event:
        """Find the task of a stated due, unless its dues are derived."""
        if self._pulses.makes(task) or event.cron not in (None, task.cron):
            return event
        return replace(event, registration=task, governed=task.governed)


def _retry_at(event: Event, task: Registration, at: datetime) -> datetime | None:
    if event.retry_stated:
        return event.retry_at
    if task.retry_delay is None or not task.governed:
        return None
    try:
        return at + task.retry_delay
    except OverflowError:
        return None
