"""Test schedules with the real engine and database on a virtual clock.

>>> sim = Simulation(start="2024-01-01T10:00:30Z")
>>> job = sim.job(outcomes=["fail", "ok"])
>>> sim.initialize([("a", "0 * * * *", job, timedelta(minutes=5))])
>>> sim.advance_to("2024-01-01T11:30Z")
>>> sim.starts("a")  # 11:00, and the retry at 11:05

Nothing here starts a thread or waits: time passes when a test says so.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
import itertools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.db.models import Value
from django.db.models.expressions import BaseExpression

from . import conf
from .core.declaration import Declaration
from .fields import InstantField
from .models import ScheduledTask, TaskRun
from .runtime.scheduler import Scheduler
from .runtime.work import Run, Work, failed, finished, invoke, succeeded
from .store.results import Result

_MINUTE = timedelta(minutes=1)
_TICK = timedelta(microseconds=1)
_FOR_EVER = timedelta(days=1000 * 365)

Instant = datetime | str
Record = dict[str, Any]


class SimulatedFailure(Exception):
    """What a simulated job raises when its outcome is ``fail``."""


class ManualClock:
    """A clock that stands still until it is set.

    Args:
        start: the first instant, aware.
    """

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._monotonic = 0.0

    def now(self) -> datetime:
        """Give the virtual instant, aware UTC."""
        return self._now

    def monotonic(self) -> float:
        """Give virtual seconds; a leap of the clock does not add to them."""
        return self._monotonic

    def database_time(self) -> BaseExpression:
        """Give an expression of the virtual instant: the database's time is virtual too."""
        return _VirtualNow(self)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Refuse to wait: nothing in a simulation may.

        Args:
            event: what would end the wait.
            seconds: the longest wait.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("a simulation never waits; advance its clock instead")

    def advance(self, to: datetime) -> None:
        """Let time pass.

        Args:
            to: the new instant, not before the present one.
        """
        self._monotonic += (to - self._now).total_seconds()
        self._now = to

    def leap(self, to: datetime) -> None:
        """Set the clock on the wall, in either direction, while no time passes.

        Args:
            to: the new instant.
        """
        self._now = to


class _VirtualNow(Value):
    """The instant of a manual clock when the query is compiled."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(None, output_field=InstantField())
        self._clock = clock

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        self.value = self._clock.now()
        return super().as_sql(compiler, connection)


@dataclass(eq=False)
class Job:
    """A callback in virtual time.

    Args:
        outcomes: ``ok``, ``fail`` or an exception to raise; the last one repeats.
        duration: how long each run takes.
    """

    outcomes: Sequence[str | BaseException] = ("ok",)
    duration: timedelta = timedelta(0)
    runs: list[Run] = field(default_factory=list)

    def __call__(self, run: Run) -> None:
        """Begin one run; raise what its outcome says."""
        outcome = self.outcomes[min(len(self.runs), len(self.outcomes) - 1)]
        self.runs.append(run)
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome != "ok":
            raise SimulatedFailure(outcome)


@dataclass(order=True)
class _End:
    """The planned end of a run."""

    at: datetime
    order: int
    instance: Instance = field(compare=False)
    work: Work = field(compare=False)
    error: BaseException | None = field(compare=False)


class _Queue:
    """The executor of one instance: keeps what was claimed until the tick is over."""

    def __init__(self) -> None:
        self.waiting: list[Work] = []

    def submit(self, work: Work) -> None:
        self.waiting.append(work)

    def close(self) -> None:
        self.waiting.clear()


class Instance:
    """One scheduler instance of a simulation: a process on the shared clock."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.scheduler: Scheduler | None = None
        self.wake: datetime | None = None
        self._queue = _Queue()

    def initialize(self, registrations: object) -> None:
        """Initialise this instance, then poll once.

        Args:
            registrations: as for ``Scheduler.initialize``.
        """
        simulation = self._simulation
        if self.scheduler is None:
            self._queue = _Queue()
            self.scheduler = simulation._new_scheduler(self._queue)
        simulation._record("IS", registrations=registrations)
        try:
            self.scheduler.initialize(registrations)
        except BaseException:
            simulation._record("IEf", registrations=registrations)
            raise
        simulation._record("IEs", registrations=registrations)
        self.poll()

    def poll(self) -> None:
        """Do one pass at the present instant, and call what it starts."""
        simulation = self._simulation
        if self.scheduler is None or not self.is_active:
            return
        simulation._deliver()
        now = simulation.now
        self.wake = self.scheduler.tick(now)
        self._call_claimed()
        self.scheduler.record(now)
        if self._is_due_again(now):
            self.wake = now

    def stop(self) -> None:
        """Stop this instance; the clock runs on to the end of its last run."""
        if self.scheduler is None:
            return
        self._simulation._record("SS")
        self.scheduler.request_stop()
        while self.scheduler.running:
            self._simulation._run_to_next_end()
        self.scheduler.stop()
        self.wake = None
        self._simulation._record("SE")

    def crash(self) -> None:
        """Let the process be gone at once, with all it was doing."""
        if self.scheduler is None:
            return
        self.scheduler.abandon()
        self.scheduler = self.wake = None
        self._simulation._forget(self)
        self._simulation._record("Crash")

    @property
    def is_active(self) -> bool:
        """Tell whether the instance polls."""
        return self.scheduler is not None and str(self.scheduler.state) == "Running"

    def _call_claimed(self) -> None:
        while self._queue.waiting:
            self._simulation._call(self, self._queue.waiting.pop(0))

    def _is_due_again(self, now: datetime) -> bool:
        task = ScheduledTask.objects.filter(wake_at__lte=now, running_run=None)
        return self.wake is not None and task.exists() and not self._queue.waiting


class Simulation:
    """The real engine and database on a virtual clock.

    Args:
        start: the first instant; aware, or text in ISO 8601 (UTC where it names no zone).
        time_zone: the project's zone, for tasks that name none.
        instances: number of schedulers on the one clock.
    """

    def __init__(self, start: Instant, time_zone: str = "UTC", instances: int = 1) -> None:
        self.clock = ManualClock(_instant(start))
        self.time_zone = time_zone
        self._instances = [Instance(self) for _ in range(instances)]
        self._ends: list[_End] = []
        self._order = itertools.count()
        self._records: list[Record] = []

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

    def advance_to(self, instant: Instant) -> None:
        """Let time pass, with a pass at each instant the loop asked for and each minute.

        Args:
            instant: the end, included.
        """
        target = _instant(instant)
        if target < self.now:
            raise ValueError(f"{target} is over; the clock leaps back with jump_to")
        while self.now < target:
            self.clock.advance(min(target, self._next_instant()))
            self.poll()

    def jump_to(self, instant: Instant) -> None:
        """Let the clock leap, forwards or back; then one pass.

        Args:
            instant: where the clock stands after it.
        """
        target = _instant(instant)
        frozen_from = self.now
        for end in sorted(end for end in self._ends if end.at <= target):
            if frozen_from < end.at < target:
                self._freeze(frozen_from, end.at)
                frozen_from = end.at + _TICK
            self._deliver_one(end)
        self._freeze(frozen_from, target)
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
        return list(TaskRun.objects.filter(task_name=name).order_by("id"))

    def task(self, name: str) -> ScheduledTask:
        """Give the row of a task.

        Args:
            name: of the task.
        """
        return ScheduledTask.objects.get(name=name)

    def trace(self) -> list[Record]:
        """Give the event records so far, for ``theory.check``."""
        return [*self._records, {"at": self.now, "event": "Tick"}]

    # --- how it works ---

    def _new_scheduler(self, queue: _Queue) -> Scheduler:
        return Scheduler(
            clock=self.clock,
            executor=queue,
            background=False,
            options=_never_expiring,
            declare=partial(conf.declarations, time_zone=self.time_zone),
        )

    def _next_instant(self) -> datetime:
        """Give the next instant at which something is to happen."""
        minute = self.now.replace(second=0, microsecond=0) + _MINUTE
        wakes = [i.wake for i in self._instances if i.wake is not None and i.is_active]
        ends = [self._ends[0].at] if self._ends else []
        return min(max(instant, self.now + _TICK) for instant in [minute, *wakes, *ends])

    def _call(self, instance: Instance, work: Work) -> None:
        self._record("RS", task=work.run.task_name)
        error = _outcome(work)
        duration = getattr(work.target.function, "duration", timedelta(0))
        end = _End(self.now + duration, next(self._order), instance, work, error)
        heapq.heappush(self._ends, end)
        if not duration:
            self._deliver_one(end)

    def _deliver(self) -> None:
        """Let every run end whose planned end has come."""
        while self._ends and self._ends[0].at <= self.now:
            self._deliver_one(self._ends[0])

    def _deliver_one(self, end: _End) -> None:
        self._ends.remove(end)
        heapq.heapify(self._ends)
        event = "REs" if end.error is None else "REf"
        self._record(event, task=end.work.run.task_name, at=end.at)
        end.work.done(_result(end))

    def _run_to_next_end(self) -> None:
        if not self._ends:
            raise RuntimeError("runs are in flight that nothing will end")
        if self._ends[0].at > self.now:
            self.clock.advance(self._ends[0].at)
        self._deliver()

    def _forget(self, instance: Instance) -> None:
        """Let the planned ends of a process that is gone never happen."""
        self._ends = [end for end in self._ends if end.instance is not instance]
        heapq.heapify(self._ends)

    def _freeze(self, since: datetime, until: datetime) -> None:
        if since < until:
            self._records.append({"at": since, "event": "Freeze", "until": until})

    def _record(self, event: str, *, at: datetime | None = None, **values: Any) -> None:
        """Write down an action; two of them never share an instant (004 EA3)."""
        at = at or self.now
        last = next((r["at"] for r in reversed(self._records) if r["event"] != "Freeze"), None)
        if last is not None and at <= last < at + _TICK * 1000:
            at = last + _TICK
        if "registrations" in values:
            values["registrations"] = list(self._described(values["registrations"]))
        self._records.append({"at": at, "event": event, **values})

    def _described(self, registrations: object) -> Iterator[Record]:
        try:
            declarations = conf.declarations(registrations, time_zone=self.time_zone)
        except Exception:
            declarations = []
        for declaration in declarations:
            yield _description(declaration)


def _description(declaration: Declaration) -> Record:
    return {
        "name": declaration.name,
        "cron": declaration.cron,
        "retry_delay": declaration.retry_delay,
        "timezone": declaration.timezone,
    }


def _never_expiring() -> conf.Options:
    """Give options whose lease outlives every simulation: only a crash ends it."""
    return replace(conf.options(), LEASE=_FOR_EVER, RENEW=_FOR_EVER / 2)


def _outcome(work: Work) -> BaseException | None:
    """Call a callback in this thread, and give what it raised."""
    try:
        value = invoke(work)
        if inspect.isawaitable(value):
            asyncio.run(finished(value))
    except BaseException as error:
        return error
    return None


def _result(end: _End) -> Result:
    duration = (end.at - end.work.run.started_at).total_seconds()
    if end.error is None:
        return succeeded(end.work, end.at, duration)
    return failed(end.work, end.error, end.at, duration)


def _instant(value: Instant) -> datetime:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
