"""The life of a scheduler and of its polling: states, steps, and who may take one.

===============  ===============  ===============  ==================================
state            step             next state       event
===============  ===============  ===============  ==================================
Uninitialized    initialize       Initializing     SchedulerInitializationStarted
Stopped          initialize       Initializing     SchedulerInitializationStarted
Running          initialize       Reinitializing   SchedulerReinitializationStarted
Initializing     succeed          Running          SchedulerInitializationCompleted
Initializing     fail             Uninitialized    SchedulerInitializationFailed
Reinitializing   succeed          Running          SchedulerReinitializationCompleted
Reinitializing   fail             Running          SchedulerInitializationFailed
Running          stop             Stopping         SchedulerStopRequested
Initializing     stop             Stopping         SchedulerStopRequested
Reinitializing   stop             Stopping         SchedulerStopRequested
Stopping         finish           Stopped          SchedulerStopped
===============  ===============  ===============  ==================================

A stop asked for during an initialisation is told at once and taken as a step when the
initialisation has ended, whatever its outcome: nothing passes through Running then.

Source: 001 Scheduler State Model, 001 Polling State Model; semantics 2.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

from ..core import events
from ..core.events import Event


class State(StrEnum):
    """Where a scheduler is in its life (001 Scheduler State Definitions)."""

    UNINITIALIZED = "Uninitialized"
    INITIALIZING = "Initializing"
    RUNNING = "Running"
    REINITIALIZING = "Reinitializing"
    STOPPING = "Stopping"
    STOPPED = "Stopped"


class Step(StrEnum):
    """What takes a scheduler from one state to the next."""

    INITIALIZE = "initialize"
    SUCCEED = "succeed"
    FAIL = "fail"
    STOP = "stop"
    FINISH = "finish"


class Polling(StrEnum):
    """Whether due tasks are looked for (001 Polling Lifecycle)."""

    INACTIVE = "Inactive"
    ACTIVE = "Active"
    STOPPING = "Stopping"


TRANSITIONS: Final[Mapping[tuple[State, Step], tuple[State, type[Event]]]] = {
    (State.UNINITIALIZED, Step.INITIALIZE): (
        State.INITIALIZING,
        events.SchedulerInitializationStarted,
    ),
    (State.STOPPED, Step.INITIALIZE): (State.INITIALIZING, events.SchedulerInitializationStarted),
    (State.RUNNING, Step.INITIALIZE): (
        State.REINITIALIZING,
        events.SchedulerReinitializationStarted,
    ),
    (State.INITIALIZING, Step.SUCCEED): (State.RUNNING, events.SchedulerInitializationCompleted),
    (State.INITIALIZING, Step.FAIL): (State.UNINITIALIZED, events.SchedulerInitializationFailed),
    (State.REINITIALIZING, Step.SUCCEED): (
        State.RUNNING,
        events.SchedulerReinitializationCompleted,
    ),
    (State.REINITIALIZING, Step.FAIL): (State.RUNNING, events.SchedulerInitializationFailed),
    (State.RUNNING, Step.STOP): (State.STOPPING, events.SchedulerStopRequested),
    (State.INITIALIZING, Step.STOP): (State.STOPPING, events.SchedulerStopRequested),
    (State.REINITIALIZING, Step.STOP): (State.STOPPING, events.SchedulerStopRequested),
    (State.STOPPING, Step.FINISH): (State.STOPPED, events.SchedulerStopped),
}

POLLING: Final[Mapping[tuple[Polling, Polling], type[Event]]] = {
    (Polling.INACTIVE, Polling.ACTIVE): events.PollingStarted,
    (Polling.ACTIVE, Polling.INACTIVE): events.PollingStopped,
    (Polling.ACTIVE, Polling.STOPPING): events.PollingStopRequested,
    (Polling.STOPPING, Polling.INACTIVE): events.PollingStopped,
}

_INITIALIZES: Final = (State.INITIALIZING, State.REINITIALIZING)


class BusyError(RuntimeError):
    """Tell a call from inside that waiting for its turn would wait for itself."""


class Lifecycle:
    """The state of one scheduler; initialisations and shutdowns take turns.

    Whoever initialises or shuts down has the turn. The others wait for it, except
    those that the one who has it may be waiting for.
    """

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._state = State.UNINITIALIZED
        self._polling = Polling.INACTIVE
        self._taken = False
        self._stop_asked = False

    @property
    def state(self) -> State:
        """Return the state of the scheduler."""
        return self._state

    @property
    def polling(self) -> Polling:
        """Return the state of its polling."""
        return self._polling

    @property
    def is_stopping(self) -> bool:
        """Return whether a stop was asked for that is not complete."""
        return self._stop_asked or self._state is State.STOPPING

    # --- initialize ---

    def begin_initialize(self, *, from_inside: bool) -> type[Event] | None:
        """Take the turn and the step, after whoever has it.

        Returns:
            what is to be told; ``None`` where a stop is to be completed first.

        Raises:
            BusyError: a stop is under way and waits for the caller.
        """
        with self._news:
            self._news.wait_for(lambda: not self._taken or (from_inside and self.is_stopping))
            if self.is_stopping and from_inside:
                raise BusyError("the scheduler is stopping, and its stop waits for this very call")
            if self.is_stopping:
                return None
            self._taken = True
            return self._take(Step.INITIALIZE)

    def conclude(self, outcome: Step) -> type[Event]:
        """Leave the state of an initialisation; the turn is kept.

        Returns:
            what is to be told.
        """
        with self._news:
            _, told = TRANSITIONS[self._state, outcome]
            self._take(Step.STOP if self._stop_asked else outcome)
            self._stop_asked = False
            return told

    def give_back(self) -> None:
        """Let the next one have the turn."""
        with self._news:
            self._taken = False
            self._news.notify_all()

    @contextmanager
    def turn_if_free(self) -> Iterator[bool]:
        """Have the turn in a running scheduler, where nobody has it; never wait."""
        with self._news:
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

        Nothing changes while the block runs. What is to be told is nothing where there
        is nothing to stop, or somebody asked before.
        """
        with self._news:
            told: list[type[Event]] = []
            if not self.is_stopping and (self._state, Step.STOP) in TRANSITIONS:
                told.append(TRANSITIONS[self._state, Step.STOP][1])
                if self._state in _INITIALIZES:
                    self._stop_asked = True
                else:
                    self._take(Step.STOP)
                told += self._poll(Polling.STOPPING)
            yield told
            self._news.notify_all()

    def begin_shutdown(self, *, seconds: float | None) -> bool:
        """Take the turn to complete a stop, after whoever has it.

        Returns:
            whether there is a stop to complete and the turn was had.
        """
        with self._news:
            self._news.wait_for(lambda: not self._taken, seconds)
            if self._taken or self._state is not State.STOPPING:
                return False
            self._taken = True
            return True

    def finish(self) -> list[type[Event]]:
        """Leave the state of a stop, once every run has ended; the turn is kept."""
        with self._news:
            return [*self._poll(Polling.INACTIVE), self._take(Step.FINISH)]

    # --- polling ---

    def poll(self, *, active: bool) -> list[type[Event]]:
        """Look for due tasks from now on, or no more (001 Polling State Model).

        Returns:
            what is to be told.
        """
        with self._news:
            if self._state is not State.RUNNING:
                return []
            return self._poll(Polling.ACTIVE if active else Polling.INACTIVE)

    def _poll(self, target: Polling) -> list[type[Event]]:
        told = POLLING.get((self._polling, target))
        if told is None:
            return []
        self._polling = target
        return [told]

    def _take(self, step: Step) -> type[Event]:
        self._state, told = TRANSITIONS[self._state, step]
        return told
