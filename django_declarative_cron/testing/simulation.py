"""The real engine and database on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any

from django.db import Error as DatabaseError

from .. import conf
from ..exceptions import DeclarativeCronError, ScheduleTaskError
from ..models import ScheduledTask, TaskRun
from ..runtime.engine import POLL_INTERVAL
from ..runtime.lifecycle import State
from ..runtime.outcome import failed, succeeded
from ..runtime.scheduler import Scheduler
from ..runtime.work import Work
from ..signals import SIGNALS
from ..store.database import alias
from ..store.results import Result
from .callables import Job, Queue, SimulatedCrash, outcome
from .clock import Instant, ManualClock, instant
from .trace import Entry, Record, Trace, described

_MINUTE = timedelta(minutes=1)
_TICK = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHORTEST_LEASE = 2 * _MINUTE
_FOR_EVER = timedelta(days=400 * 365)


class Simulation:
    """The real engine and database on a virtual clock.

    Args:
        start: the first instant: an aware datetime, or ISO 8601 text (default zone UTC).
        time_zone: the time zone of tasks that have none.
        instances: number of schedulers.
        deployment: name of the deployment; default: that of the settings, which operator actions
            always use.
        lease: lease time, at least two minutes; by default only a crash ends a lease.
        travel: changes the system clock for callbacks, such as ``time_machine.travel`` or
            ``freezegun.freeze_time``.
    """

    def __init__(
        self,
        start: Instant,
        time_zone: str = "UTC",
        instances: int = 1,
        deployment: str | None = None,
        lease: timedelta | None = None,
        travel: Callable[[datetime], AbstractContextManager[Any]] | None = None,
    ) -> None:
        if lease is not None and lease < _SHORTEST_LEASE:
            raise ValueError(f"a lease of {lease} ends between two passes; give two minutes")
        self.clock = ManualClock(instant(start))
        self.time_zone = time_zone
        self.deployment = deployment or conf.options().DEPLOYMENT
        self.registered: Record = {}
        self._lease = lease
        self._travel = travel
        self._instances = [Instance(self, index) for index in range(instances)]
        self._ends: list[End] = []  # In the order of their instants.
        self._trace = Trace()
        self._stirred_at: datetime | None = None
        # A weak reference: the simulation stops listening when it is garbage-collected.
        SIGNALS["leadership_gained"].connect(self._note_leader)

    def __getitem__(self, index: int) -> Instance:
        """Return a scheduler instance."""
        return self._instances[index]

    def __len__(self) -> int:
        """Return the number of scheduler instances."""
        return len(self._instances)

    @property
    def now(self) -> datetime:
        """Return the virtual time."""
        return self.clock.now()

    def job(
        self,
        outcomes: Sequence[str | BaseException] = ("ok",),
        duration: timedelta = timedelta(0),
    ) -> Job:
        """Return a callback that takes virtual time.

        Args:
            outcomes: ``ok``, ``fail`` or an exception to raise; the last one repeats.
            duration: duration of each run.
        """
        return Job(list(outcomes), duration)

    # --- events ---

    def initialize(self, registrations: object) -> None:
        """Initialise every instance, then poll once.

        Args:
            registrations: as for ``Scheduler.initialize``.
        """
        for instance in self._instances:
            instance.initialize(registrations)

    def poll(self) -> None:
        """Poll once with every instance."""
        self.deliver()
        for instance in self._instances:
            instance.poll()

    def stop(self) -> None:
        """Stop every instance."""
        for instance in self._instances:
            instance.stop()

    def crash(self) -> None:
        """End every instance without a shutdown."""
        for instance in self._instances:
            instance.crash()

    def advance_to(self, to: Instant, at_least_every: timedelta = _MINUTE) -> None:
        """Advance the clock, with a poll at each wake time and at least every minute.

        Args:
            to: the end, included.
            at_least_every: the longest time between two polls.
        """
        target = instant(to)
        if target < self.now:
            raise ValueError(f"{target} is over; the clock leaps back with jump_to")
        while self.now < target:
            self.clock.advance(min(target, self._next_instant(at_least_every)))
            self.poll()

    def jump_to(self, to: Instant) -> None:
        """Set the clock, forward or back, then poll once.

        Args:
            to: the new time.
        """
        target = instant(to)
        frozen_from = self.now
        for end in [end for end in self._ends if end.at <= target]:
            if frozen_from < end.at:
                self._trace.freeze(frozen_from, end.at)
                frozen_from = end.at + _TICK
            self._deliver_one(end)
        self._trace.freeze(frozen_from, target)
        self.clock.leap(target)
        self.poll()
        self.stir()

    # --- observations ---

    def starts(self, name: str) -> list[datetime]:
        """Return the starts of a task, oldest first."""
        return [run.started_at for run in self.runs(name) if run.started_at is not None]

    def runs(self, name: str) -> list[TaskRun]:
        """Return the history of a task, oldest first, including skipped and missed rows."""
        rows = TaskRun.objects.using(alias())
        runs = rows.filter(scheduler__deployment=self.deployment, task_name=name)
        return list(runs.order_by("id"))

    def task(self, name: str) -> ScheduledTask:
        """Return the row of a task."""
        rows = ScheduledTask.objects.using(alias())
        return rows.get(scheduler__deployment=self.deployment, name=name)

    def trace(self) -> list[Record]:
        """Return the events so far, for ``theory.check``.

        Raises:
            ValueError: there are several instances.
        """
        if len(self._instances) > 1:
            raise ValueError("the theory knows one scheduler: simulate a single instance")
        return [entry.record for entry in self.actions()]

    @property
    def task_names(self) -> list[str]:
        """Return the sorted names of all tasks that were registered or run."""
        return self._trace.task_names()

    # --- internals, not for users ---

    def actions(self) -> list[Entry]:
        """Return all that happened so far, each with the index of the instance it happened to."""
        return self._trace.entries(self.now)

    @property
    def in_flight(self) -> set[int]:
        return {end.work.id for end in self._ends}

    def new_scheduler(self, queue: Queue) -> Scheduler:
        """Make a scheduler on this clock that does not use threads."""
        return Scheduler(
            clock=self.clock,
            runner=queue,
            background=False,
            options=self._options,
            declare=partial(conf.declarations, time_zone=self.time_zone),
        )

    def _options(self) -> conf.Options:
        """Return options that prune nothing, and expire leases only if the simulation has one."""
        lease = self._lease or _FOR_EVER
        return replace(
            conf.options(),
            DEPLOYMENT=self.deployment,
            LEASE=lease,
            RENEW=self.pace_of_heartbeats or lease / 2,
            HISTORY_MAX_AGE=_FOR_EVER,
            HISTORY_MAX_RUNS=1_000_000_000,
        )

    @property
    def pace_of_heartbeats(self) -> timedelta | None:
        return None if self._lease is None else self._lease / 3

    def stir(self) -> None:
        """Make every instance poll again within a second, as its loop does.

        For changes that the instances did not make themselves, such as operator actions.
        """
        self._stirred_at = self.now + POLL_INTERVAL

    def _next_instant(self, at_least_every: timedelta) -> datetime:
        instants = [self.now - (self.now - _EPOCH) % at_least_every + at_least_every]
        instants += [i.wake for i in self._instances if i.wake is not None and i.is_active]
        instants += [self._ends[0].at] if self._ends else []
        if self._stirred_at is not None and self._stirred_at > self.now:
            instants.append(self._stirred_at)
        return min(max(at, self.now + _TICK) for at in instants)

    def call(self, owner: Instance, work: Work) -> None:
        """Call a run that an instance claimed, and plan its end."""
        self.act(owner, "RS", task=work.run.task_name)
        with nullcontext() if self._travel is None else self._travel(self.now):
            error = outcome(work)
        duration = getattr(work.target.function, "duration", timedelta(0))
        end = End(self.now + duration, owner, work, error)
        self._ends.append(end)
        self._ends.sort(key=attrgetter("at"))
        if not duration:
            self._deliver_one(end)

    def deliver(self) -> None:
        while self._ends and self._ends[0].at <= self.now:
            self._deliver_one(self._ends[0])

    def _deliver_one(self, end: End) -> None:
        self._ends.remove(end)
        event = "REs" if end.error is None else "REf"
        entry = self.act(end.owner, event, at=end.at, task=end.work.run.task_name)
        end.owner.ends[end.work.id] = entry
        end.work.done(end.result())
        if len(self._instances) > 1:
            self.stir()

    def run_to_next_end(self) -> None:
        """Advance time to the end of a run in flight.

        Raises:
            RuntimeError: no run will end.
        """
        if not self._ends:
            raise RuntimeError("runs are in flight that nothing will end")
        if self._ends[0].at > self.now:
            self.advance_to(self._ends[0].at)
        self.deliver()

    def _note_leader(self, instance: str, **_: object) -> None:
        for each in self._instances:
            if each.scheduler is not None and str(each.scheduler.id) == instance:
                each.leads_anew = True

    def forget(self, owner: Instance, unrecorded: list[Entry]) -> None:
        """Drop the planned ends of a dead process, and those that it did not record."""
        self._ends = [end for end in self._ends if end.owner is not owner]
        self._trace.withdraw(unrecorded)

    def act(
        self, instance: Instance, event: str, *, at: datetime | None = None, **values: object
    ) -> Entry:
        """Write an action of an instance into the trace, now or at another instant."""
        return self._trace.action(instance.index, event, at or self.now, **values)

    def described(self, registrations: object) -> Record:
        """Return the record of a registration list, and whether the list is valid."""
        try:
            declarations = conf.declarations(registrations, time_zone=self.time_zone)
        except DeclarativeCronError:
            return {"registrations": [], "valid": False}
        return {"registrations": described(declarations)}


@dataclass(eq=False)
class End:
    """The planned end of a run, dated so in its result, and the exception that it raises."""

    at: datetime
    owner: Instance
    work: Work
    error: BaseException | None

    def result(self) -> Result:
        if self.error is None:
            return succeeded(self.work, self.at)
        return failed(self.work, self.error, self.at)


class Instance:
    """One scheduler instance of a simulation: a process on the shared clock."""

    def __init__(self, simulation: Simulation, index: int) -> None:
        self.index = index
        self.scheduler: Scheduler | None = None
        self.wake: datetime | None = None
        self.is_hanging = False
        self._simulation = simulation
        self._is_stopping = False
        self.leads_anew = False
        self._queue = Queue()
        self._registered: Record = {}
        self.ends: dict[int, Entry] = {}
        self._beaten_at: datetime | None = None

    def initialize(self, registrations: object) -> None:
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
        except Exception as error:
            cause = {"cause": "storage"} if isinstance(error, ScheduleTaskError) else {}
            self._act("IEf", **listed, **cause)
            raise
        self._became_active(listed, began)

    def poll(self) -> None:
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
            while self._queue.waiting:
                self._simulation.call(self, self._queue.waiting.pop(0))
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

        The end of a run without a recorded result is lost with it (docs/semantics.md,
        "Interrupted runs").
        """
        if self.scheduler is None:
            return
        self.scheduler.abandon()
        self._note_return()
        self.scheduler = self.wake = self._beaten_at = None
        self._is_stopping = self.is_hanging = False
        self._simulation.forget(self, [self.ends[pk] for pk in self.unrecorded])
        self.ends = {}
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
        running = self.scheduler is not None and self.scheduler.state is State.RUNNING
        return running and not self.is_hanging

    @property
    def unrecorded(self) -> set[int]:
        """Return the ids of its runs that have ended but have no recorded result."""
        # These rows were just written, and a replica may not have them yet.
        rows = TaskRun.objects.using(alias())
        open_rows = rows.filter(pk__in=self.ends, outcome=TaskRun.Outcome.RUNNING)
        return set(open_rows.values_list("pk", flat=True))

    @contextmanager
    def _mortal(self) -> Iterator[None]:
        try:
            yield
        except SimulatedCrash:
            self.crash()

    def _became_active(self, listed: Record, at: datetime) -> None:
        self._registered = self._simulation.registered = listed
        self.leads_anew = False
        self._act("IEs", at=at, **listed)

    def _note_return(self) -> None:
        """Record the return of a scheduler to its own set.

        See docs/semantics.md, "Several schedulers and deployments".
        """
        if self.leads_anew and self._registered != self._simulation.registered:
            self._act("IS", **self._registered)
            self._became_active(self._registered, self._simulation.now)
        self.leads_anew = False

    def _act(self, event: str, **values: Any) -> None:
        self._simulation.act(self, event, **values)
