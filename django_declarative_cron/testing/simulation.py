"""The real engine and database on a virtual clock."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from .. import conf
from ..exceptions import DeclarativeCronError
from ..models import ScheduledTask, TaskRun
from ..runtime.engine import POLL_INTERVAL
from ..runtime.scheduler import Scheduler
from ..runtime.work import Work
from ..signals import SIGNALS
from ..store.database import alias
from .callables import End, Job, Queue, outcome
from .clock import Instant, ManualClock, instant
from .deployment import seen_by
from .instance import Instance
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
        self._ends: list[End] = []
        self._order = itertools.count()
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
        for end in sorted(end for end in self._ends if end.at <= target):
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
        """Return the starts of a task, oldest first.

        Args:
            name: of the task.
        """
        return [run.started_at for run in self.runs(name) if run.started_at is not None]

    def runs(self, name: str) -> list[TaskRun]:
        """Return the history of a task, oldest first, including skipped and missed rows.

        Args:
            name: of the task.
        """
        rows = TaskRun.objects.using(alias())
        runs = rows.filter(scheduler__deployment=self.deployment, task_name=name)
        return list(runs.order_by("id"))

    def task(self, name: str) -> ScheduledTask:
        """Return the row of a task.

        Args:
            name: of the task.
        """
        rows = ScheduledTask.objects.using(alias())
        return rows.get(scheduler__deployment=self.deployment, name=name)

    def trace(self, task: str | None = None) -> list[Record]:
        """Return the events so far, for ``theory.check``.

        Args:
            task: only the events of this task; required with several instances.

        Raises:
            ValueError: there are several instances and no task is named.
        """
        entries = self._trace.entries(self.now)
        if task is not None:
            return seen_by(task, entries)
        if len(self._instances) > 1:
            raise ValueError("the theory knows one scheduler: name a task, trace('a'), or each one")
        return [entry.record for entry in entries]

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
        """Return the ids of the runs that have not ended."""
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
        """Return the heartbeat interval, or ``None`` if leases do not expire."""
        return None if self._lease is None else self._lease / 3

    def stir(self) -> None:
        """Make every instance poll again within a second, as its loop does.

        For changes that the instances did not make themselves, such as operator actions.
        """
        self._stirred_at = self.now + POLL_INTERVAL

    def _next_instant(self, at_least_every: timedelta) -> datetime:
        """Return the next instant at which something is to happen."""
        instants = [self.now - (self.now - _EPOCH) % at_least_every + at_least_every]
        instants += [i.wake for i in self._instances if i.wake is not None and i.is_active]
        instants += [self._ends[0].at] if self._ends else []
        if self._stirred_at is not None and self._stirred_at > self.now:
            instants.append(self._stirred_at)
        return min(max(at, self.now + _TICK) for at in instants)

    def call(self, owner: Instance, work: Work) -> None:
        """Call a claimed run, and plan its end.

        Args:
            owner: the instance that claimed it.
            work: the run.
        """
        self.act(owner, "RS", task=work.run.task_name)
        with nullcontext() if self._travel is None else self._travel(self.now):
            error = outcome(work)
        duration = getattr(work.target.function, "duration", timedelta(0))
        end = End(self.now + duration, next(self._order), owner, work, error)
        heapq.heappush(self._ends, end)
        if not duration:
            self._deliver_one(end)

    def deliver(self) -> None:
        """End every run that has reached its planned end."""
        while self._ends and self._ends[0].at <= self.now:
            self._deliver_one(self._ends[0])

    def _deliver_one(self, end: End) -> None:
        self._ends.remove(end)
        heapq.heapify(self._ends)
        event = "REs" if end.error is None else "REf"
        entry = self.act(end.owner, event, at=end.at, task=end.work.run.task_name)
        end.owner.ended(end.work.id, entry)
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
                each.leads()

    def forget(self, owner: Instance) -> None:
        """Drop the planned ends of a dead process."""
        self._ends = [end for end in self._ends if end.owner is not owner]
        heapq.heapify(self._ends)

    def act(
        self, instance: Instance, event: str, *, at: datetime | None = None, **values: object
    ) -> Entry:
        """Write an action into the trace.

        Args:
            instance: the acting instance.
            event: its name in the theory's alphabet.
            at: its instant; the present one unless given.
            values: its other fields.
        """
        return self._trace.action(instance.index, event, at or self.now, **values)

    def withdraw(self, entries: Iterable[Entry]) -> None:
        """Remove from the trace entries that turned out to be unobservable."""
        self._trace.withdraw(entries)

    def described(self, registrations: object) -> Record:
        """Return the record of a registration list, and whether the list is valid."""
        try:
            declarations = conf.declarations(registrations, time_zone=self.time_zone)
        except DeclarativeCronError:
            return {"registrations": [], "valid": False}
        return {"registrations": described(declarations)}
