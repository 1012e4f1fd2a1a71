"""The scheduler: initialize, stop, and the states between."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import Error as DatabaseError
from django.db import connections

from .. import conf
from ..core import events
from ..core.declaration import Declaration, digest_of_set
from ..exceptions import ScheduleTaskError, StopSchedulerError
from ..signals import publish
from ..store import database, instances, reconcile, survey
from ..store.guard import Member
from ..store.instances import Process
from . import announce
from .clock import Clock, system_clock
from .drain import drain
from .engine import Engine
from .executors import Executor
from .executors.coroutines import CoroutineExecutor
from .executors.threads import ThreadExecutor
from .heartbeat import Heartbeat, beat
from .loop import Loop


class State(StrEnum):
    """Where a scheduler is in its life (001 Scheduler State Model)."""

    UNINITIALIZED = "Uninitialized"
    INITIALIZING = "Initializing"
    RUNNING = "Running"
    REINITIALIZING = "Reinitializing"
    STOPPING = "Stopping"
    STOPPED = "Stopped"


class Scheduler:
    """Run declared tasks (001 Scheduler Interface).

    Args:
        clock: source of time; the machine's unless a simulation brings its own.
        executor: where callbacks run; threads and one event loop unless given.
        background: run the loop and the heartbeat in threads; a simulation ticks by hand.
        options: gives the options; those of ``DECLARATIVE_CRON`` unless given.
        declare: understands registrations; by the project's settings unless given.
    """

    def __init__(
        self,
        *,
        clock: Clock = system_clock,
        executor: Executor | None = None,
        background: bool = True,
        options: Callable[[], conf.Options] = conf.options,
        declare: Callable[[object], list[Declaration]] = conf.declarations,
    ) -> None:
        self.id = uuid.uuid4()
        self.clock = clock
        self._background = background
        self._given_executor = executor
        self._options = options
        self._declare = declare
        self._state = State.UNINITIALIZED
        self._initializing = threading.RLock()
        self._stopping = threading.Lock()
        self._polling = False
        self._engine = self._new_engine()

    @property
    def state(self) -> State:
        """Give where the scheduler is in its life."""
        return self._state

    @property
    def running(self) -> int:
        """Count the runs whose callback has not ended."""
        return self._engine.running

    @property
    def declarations(self) -> list[Declaration]:
        """Give the registration set this scheduler holds."""
        return self._engine.declarations

    @property
    def is_alive(self) -> bool:
        """Tell whether the loop's thread runs."""
        return self._loop.is_alive

    # --- initialize ---

    def initialize(self, registrations: object) -> None:
        """Make a registration set the active one and begin to run it.

        Repeating it with the same set changes nothing; with another set, the sets
        are swapped in one step.

        Args:
            registrations: list of 4-tuples and dicts, as in ``SCHEDULED_TASKS``.

        Raises:
            DeclarativeCronError: the first mistake found; nothing was written.
            ScheduleTaskError: the database refused; everything stands as before.
        """
        with self._initializing:
            before = self._state
            running = before is State.RUNNING
            self._state = State.REINITIALIZING if running else State.INITIALIZING
            announce.started(self.clock.now(), registrations, running)
            try:
                declarations = self._declare(registrations)
                counts = self._activate(declarations, running)
            except BaseException as error:
                self._state = before
                announce.failed(self.clock.now(), error)
                raise
            self._state = State.RUNNING
            announce.completed(self.clock.now(), len(declarations), counts, running)
            self._poll(active=bool(declarations))

    async def ainitialize(self, registrations: object) -> None:
        """Do what ``initialize`` does, from a coroutine.

        Args:
            registrations: as for ``initialize``.
        """
        await asyncio.to_thread(_then_close, self.initialize, registrations)

    def _activate(self, declarations: list[Declaration], running: bool) -> int:
        """Reconcile; give the number of tasks that needed a write."""
        member = self._member(declarations)
        try:
            if running and self._is_active(member):
                self._engine.replace(declarations)
                return 0
            with self._engine.gate:
                done = reconcile.reconcile(member, self._process(), declarations, self.clock.now())
                self._engine.adopt(member, declarations, done.standing)
        except DatabaseError as error:
            raise ScheduleTaskError(*_suspect(declarations, member), error) from error
        publish(done.events)
        announce.scheduled(self.clock.now(), declarations)
        return len(declarations) - len(done.plan.unchanged)

    def _is_active(self, member: Member) -> bool:
        mine = self._engine.member
        if mine is None or mine.digest != member.digest:
            return False
        return survey.active_digest(member.using, member.deployment) == member.digest

    def _member(self, declarations: Sequence[Declaration]) -> Member:
        options = self._options()
        return Member(
            using=database.alias(),
            deployment=options.DEPLOYMENT,
            instance=self.id,
            digest=digest_of_set(declarations),
            lease=options.LEASE,
            renew=options.RENEW,
            database_time=self.clock.database_time(),
        )

    def _process(self) -> Process:
        return Process(socket.gethostname(), os.getpid(), self._options().RELEASE)

    # --- polling ---

    def tick(self, now: datetime | None = None) -> datetime | None:
        """Do one pass; the loop calls this, and a simulation does.

        Args:
            now: the instant to take for the present; the clock's unless given.

        Returns:
            when something is to be done next, as far as is known.
        """
        now = now or self.clock.now()
        following = self._engine.tick(now)
        try:
            if self._engine.is_orphan_set() or self._engine.has_lost_rows(now):
                self._reclaim(now)
                following = self._engine.tick(now)
        except DatabaseError as error:
            self._engine.refused("looking after the registration set", error, now)
        return following

    def next_wake(self) -> datetime | None:
        """Give when the next task is to be considered."""
        return self._engine.next_wake()

    def run_once(self) -> None:
        """Do one pass, wait for what it started, and stop."""
        self._heartbeat.start()
        self.tick()
        self.stop()

    def record(self, now: datetime | None = None) -> None:
        """Write the results that are waiting, and start nothing.

        Args:
            now: the instant to take for the present; the clock's unless given.
        """
        self._engine.record(now or self.clock.now())

    def beat(self) -> None:
        """Say that this instance lives; the heartbeat's thread does it in the background."""
        if self._engine.member is not None:
            beat(self._engine.member)

    def _reclaim(self, now: datetime) -> None:
        """Initialise the own set again: its rows are gone, or nobody holds the active one."""
        with self._initializing:
            if self._state is State.RUNNING and self._engine.member is not None:
                member, declarations = self._engine.member, self._engine.declarations
                done = reconcile.reconcile(member, self._process(), declarations, now)
                self._engine.adopt(member, declarations, done.standing)
                publish(done.events)

    def _poll(self, *, active: bool) -> None:
        """Run the loop; it polls while there is a task (001 Polling Lifecycle)."""
        if self._background:
            self._heartbeat.start()
            self._loop.start()
        self._tell_polling(active)

    def _tell_polling(self, active: bool) -> None:
        if active is not self._polling:
            self._polling = active
            event = events.PollingStarted if active else events.PollingStopped
            publish([event(at=self.clock.now())])

    # --- stop ---

    def stop(self, *, grace: timedelta | None = None) -> bool:
        """Start nothing more and wait until every run has ended (004 S3).

        Args:
            grace: the longest wait; without limit unless given. Runs that have not
                ended by then are left to be found interrupted.

        Returns:
            whether every run had ended.

        Raises:
            StopSchedulerError: results could not be recorded.
        """
        with self._stopping:
            self.request_stop()
            with self._initializing:
                # An initialisation that was under way has ended; its set starts nothing.
                return self._shut_down(grace)

    async def astop(self) -> None:
        """Do what ``stop`` does, from a coroutine."""
        await asyncio.to_thread(_then_close, self.stop)

    def request_stop(self) -> None:
        """Start nothing more from now on; return at once."""
        first = not self._engine.stopping.is_set()
        self._engine.request_stop()
        if first and self._state not in (State.UNINITIALIZED, State.STOPPED):
            now = self.clock.now()
            publish([events.SchedulerStopRequested(at=now), events.PollingStopRequested(at=now)])

    def _shut_down(self, grace: timedelta | None) -> bool:
        member = self._engine.member
        if self._state in (State.UNINITIALIZED, State.STOPPED) or member is None:
            self._engine = self._new_engine()
            return True
        self._state = State.STOPPING
        drained = drain(self._engine, self.clock, grace)
        if drained:
            self.finish_stop()
        return drained

    def finish_stop(self) -> None:
        """Leave the deployment, once every run has ended."""
        now, member = self.clock.now(), self._engine.member
        self._end_polling()
        try:
            if member is not None:
                instances.leave(member, now)
        except DatabaseError as error:
            raise StopSchedulerError(error) from error
        finally:
            self._engine.close()
            self._engine = self._new_engine()
            self._state = State.STOPPED
        self._tell_polling(False)
        publish([events.SchedulerStopped(at=now)])

    def abandon(self) -> None:
        """Leave with runs in flight, which the next leader finds interrupted.

        To be called only right before the process ends.
        """
        self._heartbeat.stop()
        if self._engine.member is not None:
            instances.give_up(self._engine.member)

    def _end_polling(self) -> None:
        self._loop.stop()
        self._heartbeat.stop()

    # --- parts ---

    def _new_engine(self) -> Engine:
        engine = Engine(
            self.clock,
            self._given_executor or ThreadExecutor(self._options().WORKERS, self.clock),
            self._given_executor or CoroutineExecutor(self.clock),
        )
        self._loop = Loop(self.clock, self.tick, engine.woken)
        self._heartbeat = Heartbeat(self.clock, lambda: engine.member)
        return engine


def _suspect(declarations: Sequence[Declaration], member: Member) -> tuple[str, str]:
    """Name what could not be scheduled: the one task, or the deployment."""
    if len(declarations) == 1:
        return declarations[0].name, declarations[0].cron
    return member.deployment, ""


def _then_close(function, *args):  # type: ignore[no-untyped-def]
    """Call in a thread of the pool and leave no connection there."""
    try:
        return function(*args)
    finally:
        connections.close_all()
