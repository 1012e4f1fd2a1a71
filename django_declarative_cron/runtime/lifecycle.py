"""States of a scheduler and of its polling, and the order of initialisations and shutdowns.

A stop that is requested during an initialisation is published immediately and taken as a step
when the initialisation has ended with any outcome; the state Running is skipped then.

Source: 001 Scheduler State Model, 001 Polling State Model.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ..core import events
from ..core.events import Event


class State(StrEnum):
    """State of a scheduler (001 Scheduler State Definitions)."""

    UNINITIALIZED = "Uninitialized"
    INITIALIZING = "Initializing"
    RUNNING = "Running"
    REINITIALIZING = "Reinitializing"
    STOPPING = "Stopping"
    STOPPED = "Stopped"


class Step(StrEnum):
    """Transition of a scheduler from one state to the next."""

    INITIALIZE = "initialize"
    SUCCEED = "succeed"
    FAIL = "fail"
    STOP = "stop"
    FINISH = "finish"


class Polling(StrEnum):
    """Whether the scheduler polls for due tasks (001 Polling Lifecycle)."""

    INACTIVE = "Inactive"
    ACTIVE = "Active"
    STOPPING = "Stopping"


_INITIALIZATION: Final = events.SchedulerInitializationStarted
_STEPS: Final = (
    (State.UNINITIALIZED, Step.INITIALIZE, State.INITIALIZING, _INITIALIZATION),
    (State.STOPPED, Step.INITIALIZE, State.INITIALIZING, _INITIALIZATION),
    (State.RUNNING, Step.INITIALIZE, State.REINITIALIZING, events.SchedulerReinitializationStarted),
    (State.INITIALIZING, Step.SUCCEED, State.RUNNING, events.SchedulerInitializationCompleted),
    (State.INITIALIZING, Step.FAIL, State.UNINITIALIZED, events.SchedulerInitializationFailed),
    (State.REINITIALIZING, Step.SUCCEED, State.RUNNING, events.SchedulerReinitializationCompleted),
    (State.REINITIALIZING, Step.FAIL, State.RUNNING, events.SchedulerInitializationFailed),
    (State.RUNNING, Step.STOP, State.STOPPING, events.SchedulerStopRequested),
    (State.INITIALIZING, Step.STOP, State.STOPPING, events.SchedulerStopRequested),
    (State.REINITIALIZING, Step.STOP, State.STOPPING, events.SchedulerStopRequested),
    (State.STOPPING, Step.FINISH, State.STOPPED, events.SchedulerStopped),
)
TRANSITIONS: Final[Mapping[tuple[State, Step], tuple[State, type[Event]]]] = {
    (state, step): (following, event) for state, step, following, event in _STEPS
}
POLLING: Final[Mapping[tuple[Polling, Polling], type[Event]]] = {
    (Polling.INACTIVE, Polling.ACTIVE): events.PollingStarted,
    (Polling.ACTIVE, Polling.INACTIVE): events.PollingStopped,
    (Polling.ACTIVE, Polling.STOPPING): events.PollingStopRequested,
    (Polling.STOPPING, Polling.INACTIVE): events.PollingStopped,
}


class BusyError(RuntimeError):
    """Report that a call from inside would wait for itself."""


class Lifecycle:
    """The state of one scheduler; initialisations and shutdowns take turns.

    The others wait for the one that has the turn, unless that one may be waiting for them.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._state = State.UNINITIALIZED
        self._polling = Polling.INACTIVE
        self._taken = False
        self._stop_asked = False

    @property
    def state(self) -> State:
        return self._state

    @property
    def polling(self) -> Polling:
        return self._polling

    @property
    def is_stopping(self) -> bool:
        """Return whether a stop was requested that is not complete."""
        return self._stop_asked or self._state is State.STOPPING

    # --- initialize ---

    def begin_initialize(self, *, from_inside: bool) -> type[Event] | None:
        """Wait for the turn and take the step.

        Returns:
            the event to publish; ``None`` where a stop is to be completed first.

        Raises:
            BusyError: a stop is under way and waits for the caller.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._taken or (from_inside and self.is_stopping))
            if self.is_stopping and from_inside:
                raise BusyError("the scheduler is stopping, and its stop waits for this very call")
            if self.is_stopping:
                return None
            self._taken = True
            return self._take(Step.INITIALIZE)

    def conclude(self, outcome: Step) -> type[Event]:
        """Leave the state of an initialisation, keep the turn; return the event to publish."""
        with self._changed:
            _, event = TRANSITIONS[self._state, outcome]
            self._take(Step.STOP if self._stop_asked else outcome)
            self._stop_asked = False
            return event

    def give_back(self) -> None:
        """Pass the turn to the next caller."""
        with self._changed:
            self._taken = False
            self._changed.notify_all()

    @contextmanager
    def turn_if_free(self) -> Iterator[bool]:
        """Take the turn in a running scheduler if it is free; never wait."""
        with self._changed:
            had = not self._taken and self._state is State.RUNNING
            self._taken = self._taken or had
        try:
            yield had
        finally:
            if had:
                self.give_back()

    # --- stop ---

    @contextmanager
    def asking_to_stop(self) -> Iterator[list[type[Event]]]:
        """Take the step to Stopping, or leave it to the initialisation that is under way.

        Yields the events to publish: none where there is nothing to stop, or a stop was
        requested before. Nothing else changes while the block runs.
        """
        with self._changed:
            told: list[type[Event]] = []
            if not self.is_stopping and (self._state, Step.STOP) in TRANSITIONS:
                told.append(TRANSITIONS[self._state, Step.STOP][1])
                if self._state is State.RUNNING:
                    self._take(Step.STOP)
                else:
                    self._stop_asked = True
                told += self._poll(Polling.STOPPING)
            yield told
            self._changed.notify_all()

    def begin_shutdown(self, *, seconds: float | None) -> bool:
        """Wait for the turn to complete a stop; return whether there is one and the turn came."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken, seconds)
            if self._taken or self._state is not State.STOPPING:
                return False
            self._taken = True
            return True

    def finish(self) -> list[type[Event]]:
        """Leave the state of a stop, once every run has ended; keep the turn."""
        with self._changed:
            return [*self._poll(Polling.INACTIVE), self._take(Step.FINISH)]

    # --- polling ---

    def poll(self, *, active: bool) -> list[type[Event]]:
        """Start or stop polling (001 Polling State Model); return the events to publish."""
        with self._changed:
            if self._state is not State.RUNNING:
                return []
            return self._poll(Polling.ACTIVE if active else Polling.INACTIVE)

    def _poll(self, target: Polling) -> list[type[Event]]:
        event = POLLING.get((self._polling, target))
        if event is None:
            return []
        self._polling = target
        return [event]

    def _take(self, step: Step) -> type[Event]:
        self._state, event = TRANSITIONS[self._state, step]
        return event


# --- calls from inside ---


@dataclass(slots=True, eq=False)
class _Passage:
    """Code that a scheduler runs; a copied context may outlive it, so it knows when it is over."""

    owner: object
    alone: bool
    over: bool = False


# A context variable follows a callback into coroutines and into ``asyncio.to_thread``; it does
# not follow it into a thread that the callback starts itself.
_passages: ContextVar[tuple[_Passage, ...]] = ContextVar("declarative_cron_inside", default=())


@contextmanager
def inside(owner: object, *, alone: bool = False) -> Iterator[None]:
    """Count calls within this block as made by the scheduler itself.

    Args:
        owner: the scheduler.
        alone: it is within an initialisation or a shutdown.
    """
    passage = _Passage(owner, alone)
    token = _passages.set((*_passages.get(), passage))
    try:
        yield
    finally:
        passage.over = True
        _passages.reset(token)


def is_inside(owner: object, *, alone: bool = False) -> bool:
    """Return whether this call comes from a callback, a receiver or a pass of the owner."""
    return any(
        passage.owner is owner and passage.alone >= alone and not passage.over
        for passage in _passages.get()
    )
