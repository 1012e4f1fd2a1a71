"""The interface between the axioms and a reading of the theory.

Between two positions a state describes the earlier one: query terms with the operator Y
before ``step``, and all others after it.
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
    """The state at a position."""

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
        """Return the tasks with an obligation that may have changed here."""

    @property
    def stop_waits_for_nothing(self) -> bool:
        """From here on L3 requires the end of a stop."""

    def step(self, position: Position) -> None:
        """Move to the next position."""

    def task_of(self, event: Event) -> Task:
        """Return the task of an event, as this reading identifies tasks."""

    def task_named(self, registration: Registration) -> Task:
        """Return a registered task, as this reading identifies tasks."""

    def may_start(self, task: Task) -> bool:
        """``Obligation_x``, as S1 uses it."""

    def obliged(self, task: Task) -> bool:
        """``Obligation_x``, as L1 uses it."""

    def running(self, task: Task) -> bool:
        """``Running_x``."""

    def in_flight(self) -> list[str]:
        """Return the names of all running tasks that a stop waits for, including removed ones."""

    def is_elsewhere(self, event: Event) -> bool:
        """Return whether the run of an event goes on without the scheduler."""

    def started(self, task: Task) -> Moment | None:
        """Return the newest start of a task."""

    def why(self, task: Task) -> Why:
        """Return the true parts of its obligation, and the last event that changed them."""


def name_of(task: Task) -> str:
    """Return the name of a task.

    Args:
        task: in the identification of any reading.
    """
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
        """Return the names of the running tasks."""
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
