"""One scheduler instance of a simulation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import Error as DatabaseError

from ..exceptions import ScheduleTaskError
from ..models import TaskRun
from ..runtime.engine import POLL_INTERVAL
from ..runtime.lifecycle import State
from ..runtime.scheduler import Scheduler
from ..store.database import alias
from .callables import Queue, SimulatedCrash
from .trace import Entry, Record

if TYPE_CHECKING:
    from .simulation import Simulation


class Instance:
    """One scheduler instance of a simulation: a process on the shared clock."""

    def __init__(self, simulation: Simulation, index: int) -> None:
        self.index = index
        self.scheduler: Scheduler | None = None
        self.wake: datetime | None = None
        self.is_hanging = False
        self._simulation = simulation
        self._is_stopping = False
        self._leads_anew = False
        self._queue = Queue()
        self._registered: Record = {}
        self._ends: dict[int, Entry] = {}
        self._beaten_at: datetime | None = None

    def initialize(self, registrations: object) -> None:
        """Initialise this instance, then poll once.

        Args:
            registrations: as for ``Scheduler.initialize``.
        """
        if self.scheduler is None:
            self._queue = Queue()
            self.scheduler = self._simulation.new_scheduler(self._queue)
        with self._mortal():
            self._initialize(self.scheduler, registrations)
            self.poll()

    def _initialize(self, scheduler: Scheduler, registrations: object) -> None:
        listed = self._simulation.described(registrations)
        self._act("IS", **listed)
        # The rows date the set by the beginning, however long it takes until tasks may start.
        began = self._simulation.now
        try:
            scheduler.initialize(registrations)
        except ScheduleTaskError:
            self._act("IEf", **listed, cause="storage")
            raise
        except Exception:
            self._act("IEf", **listed)
            raise
        self._became_active(listed, began)

    def poll(self) -> None:
        """Poll once at the present instant, and call the runs that it starts."""
        if self.scheduler is None or self.is_hanging:
            return
        if self.scheduler.state in (State.RUNNING, State.STOPPING):
            with self._mortal():
                self._poll(self.scheduler)

    def _poll(self, scheduler: Scheduler) -> None:
        self._simulation.deliver()
        now = self._simulation.now
        self._beat(scheduler, now)
        self.wake = scheduler.tick(now)
        self._note_return()
        if self._queue.waiting:
            self._call_claimed()
            self._record(scheduler, now)
        if scheduler.state is State.STOPPING:
            scheduler.tick(now)
        self._note_stop()

    def _record(self, scheduler: Scheduler, now: datetime) -> None:
        try:
            scheduler.record(now)
            self.wake = scheduler.next_wake()
        except DatabaseError:
            # It keeps the results and tries again in its next pass.
            self.wake = now + POLL_INTERVAL

    def _beat(self, scheduler: Scheduler, now: datetime) -> None:
        pace = self._simulation.pace_of_heartbeats
        if pace is not None and (self._beaten_at is None or abs(now - self._beaten_at) >= pace):
            self._beaten_at = now
            scheduler.beat()

    def stop(self) -> None:
        """Stop this instance; the clock runs on to the end of its last run.

        Called by a job, it only requests the stop, as ``Scheduler.stop`` does there.
        """
        if self.scheduler is None:
            return
        self._act("SS")
        self._is_stopping = True
        with self._mortal():
            self.scheduler.request_stop()
            if not self.scheduler.is_inside:
                self.poll()
            while self.scheduler and self.scheduler.running and not self.scheduler.is_inside:
                self._simulation.run_to_next_end()
            if self.scheduler is not None:
                self.scheduler.stop()
                self._note_stop()

    def _note_stop(self) -> None:
        """Write the end of a stop into the trace, once it is complete."""
        complete = self.scheduler is not None and self.scheduler.state is not State.STOPPING
        if self._is_stopping and complete:
            self._is_stopping, self.wake = False, None
            self._act("SE")
            self._simulation.stir()

    def crash(self) -> None:
        """Kill the process immediately, with all its activities.

        The end of a run without a recorded result is lost with it (semantics 8).
        """
        if self.scheduler is None:
            return
        self.scheduler.abandon()
        self._note_return()
        self.scheduler = self.wake = self._beaten_at = None
        self._is_stopping = self.is_hanging = False
        self._simulation.forget(self)
        self._simulation.withdraw(self._ends[pk] for pk in self.unrecorded)
        self._ends = {}
        self._act("Crash")
        self._simulation.stir()

    def hang(self) -> None:
        """Freeze the process: no tick, no heartbeat; its callbacks go on."""
        self.is_hanging = self.scheduler is not None

    def recover(self) -> None:
        """Resume a frozen process."""
        self.is_hanging = False
        self._simulation.stir()

    @property
    def is_active(self) -> bool:
        """Return whether the instance polls."""
        running = self.scheduler is not None and self.scheduler.state is State.RUNNING
        return running and not self.is_hanging

    @property
    def unrecorded(self) -> set[int]:
        """Return the ids of its runs that have ended but have no recorded result."""
        # These rows were just written, and a replica may not have them yet.
        rows = TaskRun.objects.using(alias())
        open_rows = rows.filter(pk__in=self._ends, outcome=TaskRun.Outcome.RUNNING)
        return set(open_rows.values_list("pk", flat=True))

    def ended(self, run: int, entry: Entry) -> None:
        """Take note of the end of one of its runs, which it has still to record.

        Args:
            run: id of its row.
            entry: of the end in the trace.
        """
        self._ends[run] = entry

    @contextmanager
    def _mortal(self) -> Iterator[None]:
        """Kill the process where the code inside requests it."""
        try:
            yield
        except SimulatedCrash:
            self.crash()

    def _became_active(self, listed: Record, at: datetime) -> None:
        self._registered = self._simulation.registered = listed
        self._leads_anew = False
        self._act("IEs", at=at, **listed)

    def leads(self) -> None:
        """Take note that this instance gained the lead."""
        self._leads_anew = True

    def _note_return(self) -> None:
        """Record the return of a scheduler to its own set (semantics 9)."""
        if self._leads_anew and self._registered != self._simulation.registered:
            self._act("IS", **self._registered)
            self._became_active(self._registered, self._simulation.now)
        self._leads_anew = False

    def _act(self, event: str, **values: Any) -> None:
        self._simulation.act(self, event, **values)

    def _call_claimed(self) -> None:
        while self._queue.waiting:
            self._simulation.call(self, self._queue.waiting.pop(0))
