"""The literal reading of the theory: its formulas, one position at a time.

A task is its whole tuple. Pulses of failures are never cancelled and a boot obligation lasts one
position, as written; ``operational`` lists where that cannot be satisfied.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django_declarative_cron.theory.events import Event, Registration
from django_declarative_cron.theory.operational import Task, Ungoverned, Why
from django_declarative_cron.theory.operators import Moment
from django_declarative_cron.theory.report import Mode
from django_declarative_cron.theory.trace import Position


class Hold:
    """``Hold(set, clear)``: a set with no clear since, and no clear now.

    The memory lets *set* win over a simultaneous *clear* although the operator reads false
    there: the formula is true again from the next position on.
    """

    __slots__ = ("holds", "remembers")

    def __init__(self) -> None:
        self.holds = False
        self.remembers = False

    def step(self, sets: bool, clears: bool) -> bool:
        self.remembers = sets or (self.remembers and not clears)
        self.holds = self.remembers and not clears
        return self.holds


class HoldPlus:
    """``Hold⁺(set, clear)``: as ``Hold``, but true where both come together."""

    __slots__ = ("holds",)

    def __init__(self) -> None:
        self.holds = False

    def step(self, sets: bool, clears: bool) -> bool:
        self.holds = sets or (self.holds and not clears)
        return self.holds


@dataclass(slots=True)
class _Here:
    due: bool = False
    retry_due: bool = False
    rs: bool = False
    re: bool = False
    crash: bool = False
    first_coming: bool = False
    mountain: bool = False


class _Task:
    """The memories of one task."""

    __slots__ = (
        *("boot", "changed", "due", "orphaned", "retry", "retry_pulse_at"),
        *("running", "started", "unended"),
    )

    def __init__(self) -> None:
        self.due = HoldPlus()
        self.retry = HoldPlus()
        self.orphaned = Hold()
        self.running = Hold()
        self.unended = Hold()
        self.boot = False
        self.retry_pulse_at: datetime | None = None
        self.started: Moment | None = None
        self.changed: tuple[str, Moment] | None = None

    def step(self, here: _Here) -> None:
        clears = here.rs or here.first_coming
        self.running.step(here.rs, here.re or here.crash)
        self.unended.step(here.rs, here.re)
        self.due.step(here.due, clears)
        self.retry.step(here.retry_due, clears)
        self.orphaned.step(here.crash and self.unended.holds, clears)
        self.boot = here.first_coming and here.mountain and not self.running.holds

    def pending(self) -> dict[str, bool]:
        idle = not self.running.holds
        return {
            "DuePending": self.due.holds and idle,
            "RetryPending": self.retry.holds and idle,
            "OrphanedPending": self.orphaned.holds,
            "BootDuePending": self.boot,
        }

    @property
    def is_pending(self) -> bool:
        owed = (self.due.holds or self.retry.holds) and not self.running.holds
        return owed or self.orphaned.holds or self.boot


class LiteralState:
    """What holds at a position by the letter."""

    def __init__(self) -> None:
        self.mode: Mode = "letter"
        self.registered: tuple[Registration, ...] | None = None
        self.crashed: Moment | None = None
        self.renewed = False
        self.swept: Iterable[Task] = ()
        self._members: frozenset[Registration] = frozenset()
        self._names: frozenset[str] = frozenset()
        self._active = Hold()
        self._tasks: defaultdict[Registration, _Task] = defaultdict(_Task)
        self._variants: defaultdict[str, set[Registration]] = defaultdict(set)
        self._came_at: dict[str, Moment] = {}
        self._unsettled: set[Registration] = set()
        self._unended: set[Registration] = set()
        self._ungoverned = Ungoverned(self.is_elsewhere)
        self._stop_started = False

    # --- what the axioms ask ---

    @property
    def active(self) -> bool:
        return self._active.holds

    @property
    def quiescent(self) -> bool:
        return not self.in_flight()

    @property
    def stop_waits_for_nothing(self) -> bool:
        return self._stop_started and self.registered is not None and self.quiescent

    def task_of(self, event: Event) -> Task:
        assert event.registration is not None
        return event.registration

    def task_named(self, registration: Registration) -> Task:
        return registration

    def may_start(self, task: Task) -> bool:
        return self.obliged(task)

    def obliged(self, task: Task) -> bool:
        return self.active and task in self._members and self._of(task).is_pending

    def running(self, task: Task) -> bool:
        return self._of(task).running.holds

    def in_flight(self) -> list[str]:
        running = [each.name for each in self._unended if self._tasks[each].running.holds]
        return running + self._ungoverned.names()

    def is_elsewhere(self, event: Event) -> bool:
        """Say that the theory knows of nobody but the scheduler."""
        return False

    def started(self, task: Task) -> Moment | None:
        return self._of(task).started

    def why(self, task: Task) -> Why:
        of = self._of(task)
        parts = {"Active": self.active, "Registered": task in self._members, **of.pending()}
        return Why(parts, of.changed)

    def _of(self, task: Task) -> _Task:
        assert isinstance(task, Registration)
        return self._tasks[task]

    # --- how it moves ---

    def step(self, position: Position) -> None:
        here = self._here(position)
        was_active, before = self.active, self.registered
        first = self._register(position)
        self._mark_first_coming(position, first, here)
        self._catch_up(position, here)
        self._activate(position)
        touched = here.keys() | self._unsettled
        for task in touched:
            self._move(task, here.get(task) or _Here(), position)
        self._unsettled = set(here)
        self._ungoverned.step(position)
        self._stop_started = position.has("SS")
        self.renewed = before != self.registered
        everything = self.renewed or was_active != self.active
        self.swept = self._members if everything else touched

    def _here(self, position: Position) -> defaultdict[Registration, _Here]:
        here: defaultdict[Registration, _Here] = defaultdict(_Here)
        for event in position.events:
            if event.kind == "Crash":
                self.crashed = position.moment
                for task in self._unended:
                    here[task].crash = True
            elif event.registration is not None and event.governed:
                self._note(here[event.registration], event, position)
        if position.has("Crash"):
            for task in here:
                here[task].crash = True
        return here

    def _note(self, here: _Here, event: Event, position: Position) -> None:
        assert event.registration is not None
        task = self._tasks[event.registration]
        here.due |= event.kind == "Due"
        here.rs |= event.kind == "RS"
        here.re |= event.kind in ("REs", "REf")
        if event.kind == "RS":
            task.started = position.moment
        if event.kind == "RetryDue" or (event.kind == "REf" and event.retry_at == position.at):
            task.retry_pulse_at = position.at

    def _register(self, position: Position) -> set[str]:
        """Follow ``Registered_R``; give the names that come for the first time."""
        first: set[str] = set()
        for event in position.each("IEs"):
            names = frozenset(each.name for each in event.registrations)
            first |= names - self._names
            self.registered, self._names = event.registrations, names
            self._members = frozenset(each for each in event.registrations if each.governed)
            for member in self._members:
                self._variants[member.name].add(member)
        return first

    def _mark_first_coming(
        self, position: Position, first: set[str], here: defaultdict[Registration, _Here]
    ) -> None:
        """Let ``FirstComing`` reach all tasks of a name."""
        for name in first:
            self._came_at[name] = position.moment
            for task in self._variants[name]:
                here[task].first_coming = True
                here[task].mountain = task in position.mountains

    def _catch_up(self, position: Position, here: defaultdict[Registration, _Here]) -> None:
        """Set what the dues of a task set while it was away."""
        for task, due in position.came.items():
            if due is not None and self._is_owed(task, due):
                here[task].due |= due == position.moment
                self._tasks[task].due.holds = True

    def _is_owed(self, task: Registration, due: Moment) -> bool:
        cleared = [self._came_at.get(task.name), self._tasks[task].started]
        return all(due >= each for each in cleared if each is not None)

    def _activate(self, position: Position) -> None:
        stops = position.has("SS") and self.registered is not None
        self._active.step(position.has("IEs"), stops or position.has("Crash"))

    def _move(self, task: Registration, here: _Here, position: Position) -> None:
        memories = self._tasks[task]
        here.retry_due = memories.retry_pulse_at == position.at
        before = memories.is_pending
        memories.step(here)
        if memories.is_pending != before:
            memories.changed = (" and ".join(sorted(position.kinds)), position.moment)
        if memories.unended.remembers:
            self._unended.add(task)
        else:
            self._unended.discard(task)
