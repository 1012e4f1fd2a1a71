"""One scheduler instance of a simulation."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from django.db import Error as DatabaseError

from ..exceptions import ScheduleTaskError
from ..runtime.lifecycle import State
from ..runtime.scheduler import Scheduler
from .jobs import Queue

if TYPE_CHECKING:
    from .simulation import Simulation


class Instance:
    """One scheduler instance of a simulation: a process on the shared clock."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.scheduler: Scheduler | None = None
        self.wake: datetime | None = None
        self._is_stopping = False
        self._queue = Queue()

    def initialize(self, registrations: object) -> None:
        """Initialise this instance, then poll once.

        Args:
            registrations: as for ``Scheduler.initialize``.
        """
        simulation = self._simulation
        if self.scheduler is None:
            self._queue = Queue()
            self.scheduler = simulation.new_scheduler(self._queue)
        simulation.act("IS", registrations=registrations)
        try:
            self.scheduler.initialize(registrations)
        except ScheduleTaskError:
            simulation.act("IEf", registrations=registrations, cause="storage")
            raise
        except BaseException:
            simulation.act("IEf", registrations=registrations)
            raise
        simulation.act("IEs", registrations=registrations)
        self.poll()

    def poll(self) -> None:
        """Do one pass at the present instant, and call what it starts."""
        simulation = self._simulation
        if self.scheduler is None or self.scheduler.state not in (State.RUNNING, State.STOPPING):
            return
        simulation.deliver()
        now = simulation.now
        self.wake = self.scheduler.tick(now)
        if self._queue.waiting:
            self._call_claimed()
            # A database that refuses a result keeps it waiting for the next pass.
            with suppress(DatabaseError):
                self.scheduler.record(now)
                self.wake = self.scheduler.next_wake()
        if self.scheduler.state is State.STOPPING:
            self.scheduler.tick(now)
        self._note_stop()

    def stop(self) -> None:
        """Stop this instance; the clock runs on to the end of its last run.

        Called by a job, it only asks for the stop, as ``Scheduler.stop`` does there.
        """
        if self.scheduler is None:
            return
        self._simulation.act("SS")
        self._is_stopping = True
        self.scheduler.request_stop()
        if not self.scheduler.is_inside:
            # The next pass writes down that a stop was asked for.
            self.scheduler.tick(self._simulation.now)
        while self.scheduler.running and not self.scheduler.is_inside:
            self._simulation.run_to_next_end()
        self.scheduler.stop()
        self._note_stop()

    def _note_stop(self) -> None:
        """Write the end of a stop into the trace, once it is complete."""
        complete = self.scheduler is not None and self.scheduler.state is not State.STOPPING
        if self._is_stopping and complete:
            self._is_stopping, self.wake = False, None
            self._simulation.act("SE")

    def crash(self) -> None:
        """Let the process be gone at once, with all it was doing."""
        if self.scheduler is None:
            return
        self.scheduler.abandon()
        self.scheduler = self.wake = None
        self._is_stopping = False
        self._simulation.forget(self)
        self._simulation.act("Crash")

    @property
    def is_active(self) -> bool:
        """Tell whether the instance polls."""
        return self.scheduler is not None and self.scheduler.state is State.RUNNING

    def _call_claimed(self) -> None:
        while self._queue.waiting:
            self._simulation.call(self, self._queue.waiting.pop(0))
