"""The real engine and database on a virtual clock."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from .. import conf
from ..exceptions import DeclarativeCronError
from ..models import ScheduledTask, TaskRun
from ..runtime.scheduler import Scheduler
from ..runtime.work import Work
from .clock import Instant, ManualClock, instant
from .instance import Instance
from .jobs import End, Job, Queue, outcome
from .trace import Record, Trace, described

_MINUTE = timedelta(minutes=1)
_TICK = timedelta(microseconds=1)
_FOR_EVER = timedelta(days=400 * 365)


class Simulation:
    """The real engine and database on a virtual clock.

    Args:
        start: the first instant; aware, or text in ISO 8601 (UTC where it names no zone).
        time_zone: the project's zone, for tasks that name none.
        instances: number of schedulers on the one clock.
        deployment: which of several deployments in the database it is; that of the
            settings unless given. People's acts go to that of the settings.
    """

    def __init__(
        self,
        start: Instant,
        time_zone: str = "UTC",
        instances: int = 1,
        deployment: str | None = None,
    ) -> None:
        self.clock = ManualClock(instant(start))
        self.time_zone = time_zone
        self.deployment = deployment or conf.options().DEPLOYMENT
        self._instances = [Instance(self) for _ in range(instances)]
        self._ends: list[End] = []
        self._order = itertools.count()
        self._trace = Trace()

    def __getitem__(self, index: int) -> Instance:
        """Give one of the scheduler instances."""
        return self._instances[index]

    @property
    def now(self) -> datetime:
        """Give the present virtual instant."""
        return self.clock.now()

    def job(
        self,
        outcomes: Sequence[str | BaseException] = ("ok",),
        duration: timedelta = timedelta(0),
    ) -> Job:
        """Make a callback in virtual time.

        Args:
            outcomes: ``ok``, ``fail`` or an exception to raise; the last one repeats.
            duration: how long each run takes.
        """
        return Job(list(outcomes), duration)

    # --- what happens ---

    def initialize(self, registrations: object) -> None:
        """Initialise every instance, each with one poll.

        Args:
            registrations: as for ``Scheduler.initialize``.
        """
        for instance in self._instances:
            instance.initialize(registrations)

    def poll(self) -> None:
        """Do one pass of every instance at the present instant."""
        for instance in self._instances:
            instance.poll()

    def stop(self) -> None:
        """Stop every instance."""
        for instance in self._instances:
            instance.stop()

    def crash(self) -> None:
        """Let every process be gone at once."""
        for instance in self._instances:
            instance.crash()

    def advance_to(self, to: Instant) -> None:
        """Let time pass, with a pass at each instant the loop asked for and each minute.

        Args:
            to: the end, included.
        """
        target = instant(to)
        if target < self.now:
            raise ValueError(f"{target} is over; the clock leaps back with jump_to")
        while self.now < target:
            self.clock.advance(min(target, self._nextinstant()))
            self.poll()

    def jump_to(self, to: Instant) -> None:
        """Let the clock leap, forwards or back; then one pass.

        Args:
            to: where the clock stands after it.
        """
        target = instant(to)
        frozen_from = self.now
        for end in sorted(end for end in self._ends if end.at <= target):
            if frozen_from < end.at < target:
                self._trace.freeze(frozen_from, end.at)
                frozen_from = end.at + _TICK
            self._deliver_one(end)
        self._trace.freeze(frozen_from, target)
        self.clock.leap(target)
        self.poll()

    # --- what is seen ---

    def starts(self, name: str) -> list[datetime]:
        """Give the instants of all starts of a task, oldest first.

        Args:
            name: of the task.
        """
        return [run.started_at for run in self.runs(name) if run.started_at is not None]

    def runs(self, name: str) -> list[TaskRun]:
        """Give the history rows of a task, oldest first; skipped and missed ones too.

        Args:
            name: of the task.
        """
        runs = TaskRun.objects.filter(scheduler__deployment=self.deployment, task_name=name)
        return list(runs.order_by("id"))

    def task(self, name: str) -> ScheduledTask:
        """Give the row of a task.

        Args:
            name: of the task.
        """
        return ScheduledTask.objects.get(scheduler__deployment=self.deployment, name=name)

    def trace(self) -> list[Record]:
        """Give the event records so far, for ``theory.check``."""
        return self._trace.up_to(self.now)

    # --- how it works ---

    def new_scheduler(self, queue: Queue) -> Scheduler:
        return Scheduler(
            clock=self.clock,
            executor=queue,
            background=False,
            options=self._options,
            declare=partial(conf.declarations, time_zone=self.time_zone),
        )

    def _nextinstant(self) -> datetime:
        """Give the next instant at which something is to happen."""
        minute = self.now.replace(second=0, microsecond=0) + _MINUTE
        wakes = [i.wake for i in self._instances if i.wake is not None and i.is_active]
        ends = [self._ends[0].at] if self._ends else []
        return min(max(at, self.now + _TICK) for at in [minute, *wakes, *ends])

    def call(self, owner: Instance, work: Work) -> None:
        """Call a claimed run, and plan its end.

        Args:
            owner: the instance that claimed it.
            work: the run.
        """
        self.act("RS", task=work.run.task_name)
        error = outcome(work)
        duration = getattr(work.target.function, "duration", timedelta(0))
        end = End(self.now + duration, next(self._order), owner, work, error)
        heapq.heappush(self._ends, end)
        if not duration:
            self._deliver_one(end)

    def deliver(self) -> None:
        """Let every run end whose planned end has come."""
        while self._ends and self._ends[0].at <= self.now:
            self._deliver_one(self._ends[0])

    def _deliver_one(self, end: End) -> None:
        self._ends.remove(end)
        heapq.heapify(self._ends)
        event = "REs" if end.error is None else "REf"
        self.act(event, at=end.at, task=end.work.run.task_name)
        end.work.done(end.result())

    def run_to_next_end(self) -> None:
        """Let time pass to the end of a run in flight.

        Raises:
            RuntimeError: none will end.
        """
        if not self._ends:
            raise RuntimeError("runs are in flight that nothing will end")
        if self._ends[0].at > self.now:
            self.clock.advance(self._ends[0].at)
        self.deliver()

    def forget(self, owner: Instance) -> None:
        """Let the planned ends of a process that is gone never happen."""
        self._ends = [end for end in self._ends if end.owner is not owner]
        heapq.heapify(self._ends)

    def act(self, event: str, *, at: datetime | None = None, **values: Any) -> None:
        """Write an action into the trace.

        Args:
            event: its name in the theory's alphabet.
            at: its instant; the present one unless given.
            values: its other fields.
        """
        if "registrations" in values:
            values.update(self._described(values["registrations"]))
        self._trace.action(event, at or self.now, **values)

    def _described(self, registrations: object) -> Record:
        try:
            declarations = conf.declarations(registrations, time_zone=self.time_zone)
        except DeclarativeCronError:
            return {"registrations": [], "valid": False}
        return {"registrations": described(declarations)}

    def _options(self) -> conf.Options:
        """Give options by which only a crash ends a lease, and nothing is forgotten."""
        return replace(
            conf.options(),
            DEPLOYMENT=self.deployment,
            LEASE=_FOR_EVER,
            RENEW=_FOR_EVER / 2,
            HISTORY_MAX_AGE=_FOR_EVER,
            HISTORY_MAX_RUNS=1_000_000_000,
        )
