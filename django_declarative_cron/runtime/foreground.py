"""Runs in the foreground: ``cron run``, ``cron backfill``, and runs in workers."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import Error as DatabaseError
from django.db import OperationalError

from .. import conf
from ..core import events
from ..core.declarations.declaration import Declaration
from ..signals import publish
from ..store import liveness, manual_runs, results
from ..store.guard import Candidacy, Member, peek
from ..store.manual_runs import AlreadyRunningError, CommittedStart, LiveDueError
from ..store.operator_actions import Act
from ..store.results import Result
from . import watchers
from .clock import Clock
from .connections import renew
from .fencing import ObservedWindow, member_of, this_process
from .heartbeat import Heartbeat
from .outcome import Ending
from .runners.registry import call_once
from .watchdog import WatchdogProcess
from .work import Run, Work

_ATTEMPTS_TO_RECORD = 10
_BETWEEN_ATTEMPTS = 0.5


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a run in the foreground, its recorded event, and how long it took."""

    result: Result
    end: events.Event | None
    took: timedelta


def run_now(
    declaration: Declaration,
    act: Act,
    clock: Clock,
    *,
    started: Callable[[], object] = lambda: None,
    watchdog: WatchdogProcess | None = None,
) -> Ran:
    """Run a declared task to its end in this thread.

    Raises:
        NotRegisteredError: the task has no row.
        UnreadableRowError: its row is damaged.
        AlreadyRunningError: a run of it is in progress.
        django.db.Error: it was not started, or its end could not be recorded; a scheduler
            then finds it interrupted.
    """
    options = conf.options()
    member = member_of(options, clock, uuid.uuid4())
    start = manual_runs.start_now(member, this_process(options), declaration, act)
    return run_started(member, start, declaration, clock, started, watchdog)


def run_started(
    member: Member,
    start: CommittedStart,
    declaration: Declaration,
    clock: Clock,
    started: Callable[[], object] = lambda: None,
    watchdog: WatchdogProcess | None = None,
) -> Ran:
    """Run a committed start to its end in this thread, and record it.

    Raises:
        django.db.Error: its end could not be recorded.
    """
    watchers.begin([declaration])
    try:
        with _living(member, clock, watchdog):
            publish(start.events)
            started()
            result = call_once(_work(start, declaration, member), clock)
            told = record(member, result, clock)
        publish(told)
    finally:
        watchers.end()
    took = result.finished_at - start.claim.started.actual_time
    # The clock may have been set back during the run.
    return Ran(result, told[0] if told else None, max(took, timedelta(0)))


@contextmanager
def _living(member: Member, clock: Clock, watchdog: WatchdogProcess | None) -> Iterator[None]:
    """Write heartbeats, so that the leader does not interrupt the run; leave at the end."""
    heartbeat = Heartbeat(clock, lambda: member, watchdog)
    heartbeat.start()
    try:
        yield
    except BaseException:
        heartbeat.stop()
        with suppress(DatabaseError):
            liveness.give_up(member)
        raise
    heartbeat.stop()
    # The run is recorded; an instance that could not leave is found dead later.
    with suppress(DatabaseError):
        liveness.leave(member, clock.now())
    if watchdog is not None:
        watchdog.dismiss()


def _work(start: CommittedStart, declaration: Declaration, member: Member) -> Work:
    claim, ending = start.claim, Ending()
    return Work(
        id=claim.run,
        run=Run.of(claim.started, declaration, threading.Event(), ending.asked, claim.run),
        target=declaration.target,
        declaration=declaration,
        ending=ending,
        member=member if declaration.atomic else None,
    )


def record(member: Member, result: Result, clock: Clock) -> list[events.Event]:
    """Record the end of a run; retry for a while where the database refuses.

    Raises:
        django.db.Error: it refused every time.
    """
    for _ in range(_ATTEMPTS_TO_RECORD - 1):
        try:
            return _recorded(member, result, clock)
        except DatabaseError as error:
            renew(error)
            clock.wait(threading.Event(), _BETWEEN_ATTEMPTS)
    return _recorded(member, result, clock)


def _recorded(member: Member, result: Result, clock: Clock) -> list[events.Event]:
    recorded = results.record(member, [result], clock.now())
    if recorded.held:
        raise OperationalError(f"somebody else holds the rows of task {result.task_name!r}")
    return recorded.events


_BETWEEN_LOOKS = 1.0


@dataclass(slots=True)
class Backfill:
    """Runs of past occurrences of one task, all by one instance.

    Args:
        declaration: of the task, which a scheduler has registered.
        clock: source of time.
        repeat: also run occurrences that have succeeded.
        waits: called each time before it waits for other runs of the task.
        watchdog: starts a watchdog process for a run, or returns ``None``.
    """

    declaration: Declaration
    clock: Clock
    repeat: bool
    waits: Callable[[], None]
    watchdog: Callable[[], WatchdogProcess | None] = lambda: None
    member: Member = field(init=False)
    window: ObservedWindow = field(init=False, default_factory=ObservedWindow)
    _options: conf.Options = field(init=False)

    def __post_init__(self) -> None:
        self._options = conf.options()
        self.member = member_of(self._options, self.clock, uuid.uuid4())

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Begin the watchers once for all runs."""
        watchers.begin([self.declaration])
        try:
            yield
        finally:
            watchers.end()

    def run(self, occurrence: datetime) -> Ran:
        """Run one occurrence to its end, once no scheduled run of the task is in the way.

        Raises:
            DoneError: it has succeeded.
            NotRegisteredError: the task has no row.
            UnreadableRowError: its row is damaged.
            django.db.Error: it was not started, or its end could not be recorded.
        """
        start = self._start(occurrence)
        watchdog = self.watchdog()
        return run_started(self.member, start, self.declaration, self.clock, watchdog=watchdog)

    def _start(self, occurrence: datetime) -> CommittedStart:
        is_waiting = False
        while True:
            now = self.clock.now()
            try:
                return manual_runs.start_occurrence(
                    self.member,
                    this_process(self._options),
                    self.declaration,
                    occurrence,
                    now,
                    repeat=self.repeat,
                    candidacy=Candidacy(self.window.watched),
                )
            except (AlreadyRunningError, LiveDueError):
                if not is_waiting:
                    self.waits()
                is_waiting = True
                self._watch()
                self.clock.wait(threading.Event(), _BETWEEN_LOOKS)

    def _watch(self) -> None:
        """Observe the other instances: without a leader, no other process detects deaths."""
        seen = peek(self.member)
        if seen is not None:
            self.window.extend(self.member, seen.database_now)
