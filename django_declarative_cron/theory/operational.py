"""The theory as this scheduler reads it, where its literal formulas cannot be satisfied.

- R1: a boot obligation stays until the start; two at one position could not be satisfied.
- R2: one retry per task, that of its newest failure; any start clears it. Literally, old pulses
  contradict S2.
- R3: a crash orphans the runs in flight, and nothing else. Literally, old interruptions come back.
- R4: while a stop is outstanding an initialisation does not activate.
- R5: a stop is awaited from the first quiescent position on, regardless of earlier runs.
- R6: a task is its name. Another cron, zone or delay is an override: nothing is pending for the
  past, and a run in flight goes on. Its failure or interruption has no consequence.
- R7: dues skip the second pass of a repeated local minute: the schedule ensures it.
- R8: a first registration takes precedence over pulses at its position.
- R9: an initialisation may fail when the storage does.
- R10: a run that was handed over belongs to its worker. Neither a stop nor a crash of the
  scheduler ends it, and no stop waits for it; while it is in flight, no other run of its task may
  start.

A task that succeeded in the minute of its registration need not start again
(docs/semantics.md, "New tasks").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from .events import PULSES, Event, Registration
from .operators import Moment
from .report import Mode
from .trace import Position

Task = Registration | str
"""The identity of a task: its name, or literally the whole tuple."""


def name_of(task: Task) -> str:
    return task if isinstance(task, str) else task.name


class Ungoverned:
    """Runs of tasks that the theory does not govern; a stop waits for them as well.

    Args:
        is_elsewhere: returns whether the run of an event goes on without the scheduler.
    """

    def __init__(self, is_elsewhere: Callable[[Event], bool]) -> None:
        self._is_elsewhere = is_elsewhere
        self._running: Counter[str] = Counter()

    def step(self, position: Position) -> None:
        for event in position.events:
            if event.kind == "Crash":
                self._running.clear()
            elif not event.governed and event.task is not None and not self._is_elsewhere(event):
                self._count(event.kind, event.task)

    def _count(self, kind: str, name: str) -> None:
        if kind == "RS":
            self._running[name] += 1
        elif kind in ("REs", "REf"):
            self._running[name] -= 1
        if self._running[name] <= 0:
            del self._running[name]

    def __bool__(self) -> bool:
        return bool(self._running)

    def names(self) -> list[str]:
        return list(self._running)


class Why(NamedTuple):
    """The reasons for a task's obligation; formatted only on request.

    Args:
        parts: of its obligation, each with its truth.
        changed: the kinds of the events that changed them last, and the moment of these.
    """

    parts: Mapping[str, bool]
    changed: tuple[str, Moment] | None

    def __str__(self) -> str:
        bits = (f"{name} {'true' if holds else 'false'}" for name, holds in self.parts.items())
        last = "none" if self.changed is None else f"{self.changed[0]} at {self.changed[1]}"
        return f"{', '.join(bits)}; last change: {last}"


class _Task:
    """The state of one task name."""

    __slots__ = (
        *("boot", "changed", "due", "excused", "of_the_past", "orphaned"),
        *("retry", "retry_at", "running", "started", "succeeded"),
    )

    def __init__(self) -> None:
        self.due = self.retry = self.orphaned = self.boot = False
        self.excused = False
        self.running = False
        self.of_the_past = False
        self.retry_at: datetime | None = None
        self.started: Moment | None = None
        self.succeeded: Moment | None = None
        self.changed: tuple[str, Moment] | None = None

    def clear(self) -> None:
        self.due = self.retry = self.orphaned = self.boot = self.excused = False
        self.retry_at = None

    @property
    def is_pending(self) -> bool:
        return not self.running and (self.due or self.retry or self.orphaned or self.boot)

    @property
    def is_owed(self) -> bool:
        """Return ``Pending_x`` without the optional obligations."""
        return self.is_pending and not (self.boot and self.excused and not self._by_pulse)

    @property
    def _by_pulse(self) -> bool:
        return self.due or self.retry or self.orphaned

    def pending(self) -> dict[str, bool]:
        idle = not self.running
        return {
            "DuePending": self.due and idle,
            "RetryPending": self.retry and idle,
            "OrphanedPending": self.orphaned and idle,
            "BootDuePending": self.boot and idle,
        }


class OperationalState:
    """The state at a position in the repaired reading."""

    def __init__(self) -> None:
        self.mode: Mode = "repaired"
        self.registered: tuple[Registration, ...] | None = None
        self.crashed: Moment | None = None
        self.swept: Iterable[Task] = ()
        self.active = False
        self.renewed = False
        self._stopping = False
        self._members: frozenset[str] = frozenset()
        self._names: frozenset[str] = frozenset()
        self._tasks: dict[str, _Task] = {}
        self._in_flight: dict[str, None] = {}
        self._ungoverned = Ungoverned(self.is_elsewhere)

    # --- queries of the axioms ---

    @property
    def stop_waits_for_nothing(self) -> bool:
        """Return whether a stop was called and no run of the scheduler's own is in flight."""
        return self._stopping and not self._in_flight and not self._ungoverned

    def task_of(self, event: Event) -> Task:
        """Return the subject of an event, as this reading identifies tasks."""
        assert event.task is not None
        return event.task

    def task_named(self, registration: Registration) -> Task:
        return registration.name

    def may_start(self, task: Task) -> bool:
        """Return whether a start would be allowed just after this position."""
        return self.active and task in self._members and self._of(task).is_pending

    def obliged(self, task: Task) -> bool:
        return self.active and task in self._members and self._of(task).is_owed

    def running(self, task: Task) -> bool:
        return self._of(task).running

    def in_flight(self) -> list[str]:
        """Name the tasks of which a run of the scheduler's own is in flight."""
        return [*self._in_flight, *self._ungoverned.names()]

    def is_elsewhere(self, event: Event) -> bool:
        """Return whether the run of an event was handed over to a worker (R10)."""
        return event.handed

    def started(self, task: Task) -> Moment | None:
        return self._of(task).started

    def why(self, task: Task) -> Why:
        of = self._of(task)
        parts = {"Active": self.active, "Registered": task in self._members, **of.pending()}
        return Why(parts, of.changed)

    def _of(self, task: Task) -> _Task:
        assert isinstance(task, str)
        if task not in self._tasks:
            self._tasks[task] = _Task()
        return self._tasks[task]

    # --- how it moves ---

    def step(self, position: Position) -> None:
        was_active, before = self.active, self._members
        touched: set[str] = set()
        for event in sorted(position.events, key=_pulses_first):
            if event.task is not None and event.governed:
                touched.add(event.task)
                self._happens(event, position)
            elif event.task is None:
                self._rules(event, position)
        self._ungoverned.step(position)
        everything = was_active != self.active or before is not self._members
        self.swept = before | self._members if everything else touched

    def _happens(self, event: Event, position: Position) -> None:
        task = self._of(event.task or "")
        before = task.is_pending
        match event.kind:
            case "Due":
                task.due |= event.registration is not None
            case "RetryDue":
                self._retry_due(task, event)
            case "RS":
                self._starts(task, event, position)
            case "REs" | "REf":
                self._ends(task, event)
        if task.is_pending != before:
            task.changed = (event.kind, position.moment)

    def _retry_due(self, task: _Task, event: Event) -> None:
        if event.registration is None:
            return
        if event.retry_at is None or event.retry_at == task.retry_at:
            task.retry, task.retry_at = True, None

    def _starts(self, task: _Task, event: Event, position: Position) -> None:
        task.clear()
        task.running, task.of_the_past = True, False
        task.started = position.moment
        if not self.is_elsewhere(event):
            self._in_flight[event.task or ""] = None

    def _ends(self, task: _Task, event: Event) -> None:
        if not task.running:
            return
        task.running = False
        self._in_flight.pop(event.task or "", None)
        if event.kind == "REs":
            task.succeeded = task.started
        elif not task.of_the_past:
            task.retry_at = event.retry_at

    def _rules(self, event: Event, position: Position) -> None:
        match event.kind:
            case "IEs":
                self._registers(event, position)
                self.active = not self._stopping
            case "SS":
                self.active, self._stopping = False, True
            case "SE":
                self._stopping = False
            case "Crash":
                self.active, self._stopping = False, False
                self._crashes(position)

    def _crashes(self, position: Position) -> None:
        self.crashed = position.moment
        for name in self._in_flight:
            task = self._tasks[name]
            task.running = False
            task.orphaned = not task.of_the_past
            task.changed = ("Crash", position.moment)
        self._in_flight.clear()

    def _registers(self, event: Event, position: Position) -> None:
        before = self._names
        self.registered = event.registrations
        self._names = frozenset(each.name for each in event.registrations)
        self._members = frozenset(each.name for each in event.registrations if each.governed)
        for each in position.came:
            self._comes(each, each.name not in before, position)

    def _comes(self, registration: Registration, is_first: bool, position: Position) -> None:
        """Update with a first registration or override: only the current minute may be pending."""
        task = self._of(registration.name)
        mountain = registration in position.mountains and not task.running
        succeeded = task.succeeded is not None and task.succeeded.at >= position.minute
        task.clear()
        task.of_the_past = task.running
        task.boot = mountain and (is_first or not succeeded)
        task.excused = succeeded
        task.changed = ("FirstComing" if is_first else "override", position.moment)


def _pulses_first(event: Event) -> bool:
    return event.kind not in PULSES
