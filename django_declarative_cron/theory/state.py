"""The interface between the axioms and a reading of the theory.

Between two positions a state answers for the earlier one: what the axioms write with the
operator Y is asked before ``step``, everything else after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple, Protocol

from .events import Event, Registration
from .operators import Moment
from .trace import Position

Mode = Literal["letter", "repaired"]
Task = Registration | str
"""The identity of a task: its name, or literally the whole tuple."""


class State(Protocol):
    """What holds at a position."""

    @property
    def mode(self) -> Mode:
        """The reading."""

    @property
    def registered(self) -> tuple[Registration, ...] | None:
        """The list of the newest ``IEs``, whether active or not."""

    @property
    def crashed(self) -> Moment | None:
        """The newest crash."""

    @property
    def active(self) -> bool:
        """``Active_R`` of the registered list."""

    @property
    def renewed(self) -> bool:
        """The obligations of the list before ended here, as another list came."""

    @property
    def swept(self) -> Iterable[Task]:
        """The tasks whose obligation may have changed here."""

    @property
    def quiescent(self) -> bool:
        """``Quiescent``, as far as a stop waits for runs."""

    @property
    def stop_waits_for_nothing(self) -> bool:
        """From here on L3 asks for the end of a stop."""

    def step(self, position: Position) -> None:
        """Move to the next position."""

    def task_of(self, event: Event) -> Task:
        """Give the task of an event, as this reading tells tasks apart."""

    def task_named(self, registration: Registration) -> Task:
        """Give a registered task, as this reading tells tasks apart."""

    def may_start(self, task: Task) -> bool:
        """``Obligation_x``, as S1 asks for it."""

    def obliged(self, task: Task) -> bool:
        """``Obligation_x``, as L1 asks for it."""

    def running(self, task: Task) -> bool:
        """``Running_x``."""

    def in_flight(self) -> list[str]:
        """Give the names of all running tasks a stop waits for, removed ones too."""

    def is_elsewhere(self, event: Event) -> bool:
        """Say whether the run of an event goes on without the scheduler."""

    def started(self, task: Task) -> Moment | None:
        """Give the newest start of a task."""

    def why(self, task: Task) -> Why:
        """Say which parts of its obligation are true, and what changed them last."""


def name_of(task: Task) -> str:
    """Give the name of a task.

    Args:
        task: however it is told apart.
    """
    return task if isinstance(task, str) else task.name


class Ungoverned:
    """Runs of tasks that the theory does not govern: a stop waits for them all the same.

    Args:
        is_elsewhere: tells of an event whether its run goes on without the scheduler.
    """

    def __init__(self, is_elsewhere: Callable[[Event], bool]) -> None:
        self._is_elsewhere = is_elsewhere
        self._running: Counter[str] = Counter()

    def step(self, position: Position) -> None:
        """Move to the next position.

        Args:
            position: where to.
        """
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
        """Give the names of those that run."""
        return list(self._running)


class Why(NamedTuple):
    """Why a task was owed or was not; put into words only where somebody asks.

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
