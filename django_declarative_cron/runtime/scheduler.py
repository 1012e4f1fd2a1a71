"""The scheduler: initialize, stop, and the passes between."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from django.db import Error as DatabaseError

from .. import conf
from ..core import events
from ..core.declarations.declaration import Declaration, digest_of_set
from ..core.events import Event
from ..exceptions import DeclarativeCronError, ScheduleTaskError, StopSchedulerError
from ..signals import is_heard, publish, report
from ..store import liveness, reconcile
from ..store.guard import Member, Role
from ..store.reconcile import Terms
from . import watchers
from .clock import Clock, Moment, moment, system_clock
from .connections import then_close
from .engine import Engine
from .event_delivery import SinkThread
from .fencing import member_of, this_process
from .heartbeat import Heartbeat
from .lifecycle import BusyError, Lifecycle, Polling, State, Step, inside, is_inside
from .loop import Loop, Pulse
from .runners import Load, Runner
from .shutdown import drain
from .watchdog import WatchdogProcess

__all__ = ["Scheduler", "State"]


class Scheduler:
    """Run declared tasks (001 Scheduler Interface).

    ``initialize`` and ``stop`` may be called at any time by any thread, callback or receiver.

    Args:
        clock: source of time; by default the system's.
        runner: calls every callback; the runner of each task unless given.
        background: run the loop and the heartbeat in threads; a simulation ticks by hand.
        options: returns the options; those of ``DECLARATIVE_CRON`` unless given.
        declare: parses registrations; by default with the project's settings.
        watchdog: the watchdog process, if there is one.
        force: replace a registration set of a newer release too.
    """

    def __init__(
        self,
        *,
        clock: Clock = system_clock,
        runner: Runner | None = None,
        background: bool = True,
        options: Callable[[], conf.Options] = conf.options,
        declare: Callable[[object], Sequence[Declaration]] = conf.declarations,
        watchdog: WatchdogProcess | None = None,
        force: bool = False,
    ) -> None:
        self.clock = clock
        self._background, self._given_runner = background, runner
        self._options, self._declare = options, declare
        self._watchdog, self._life = watchdog, Lifecycle()
        self._terms = Terms.BY_FORCE if force else Terms.UNLESS_OLDER
        self._renew()

    def _renew(self) -> None:
        """Make another instance; the row of the stopped one is not changed."""
        self.id = uuid.uuid4()
        self._engine = engine = Engine(self.clock, self._life, self._options(), self._given_runner)
        self._loop = Loop(self.clock, self.tick, engine.woken, engine.longest_sleep)
        self._heartbeat = Heartbeat(
            self.clock, lambda: engine.member, self._watchdog, engine.validity, engine.window
        )
        self._sink = SinkThread(self.clock, self._options, lambda: engine.member)
        self._is_watching = False

    @property
    def state(self) -> State:
        """Return the state, also while it changes."""
        return self._life.state

    @property
    def polling(self) -> Polling:
        """Return whether the scheduler polls for due tasks."""
        return self._life.polling

    @property
    def running(self) -> int:
        """Return the number of unfinished callbacks."""
        return self._engine.executor.running

    @property
    def unrecorded(self) -> int:
        """Return the number of results that wait to be written."""
        executor = self._engine.executor
        return max(executor.unfinished - executor.running, 0)

    @property
    def loads(self) -> list[Load]:
        """Return how busy each runner is."""
        return self._engine.runners.loads

    @property
    def declarations(self) -> Sequence[Declaration]:
        """Return the registration set of this scheduler."""
        return self._engine.declarations

    @property
    def role(self) -> Role:
        """Return the role of this instance in its deployment."""
        return self._engine.role

    @property
    def is_alive(self) -> bool:
        """Return whether the threads of the loop and the heartbeat run."""
        return self._loop.is_alive and self._heartbeat.is_alive

    @property
    def pulse(self) -> Pulse:
        """Return the health of the loop."""
        return self._loop.pulse

    @property
    def is_inside(self) -> bool:
        """Return whether the caller is a callback of this scheduler, or a receiver it calls."""
        return is_inside(self._life)

    # --- initialize ---

    def initialize(self, registrations: object) -> None:
        """Make a registration set the active one and begin to run it.

        Repeating it with the same set changes nothing; with another set, the sets are swapped
        in one step. Calls from several threads run one after another; a call during a stop
        waits for its end. A callback may call it too: the new set then decides about the rest
        of its own run.

        Args:
            registrations: list of 4-tuples and dicts, as in ``SCHEDULED_TASKS``.

        Raises:
            DeclarativeCronError: the first mistake found; nothing was written.
            ScheduleTaskError: the database refused, or a callback calls it while the
                scheduler stops and waits for that callback; nothing has changed.
        """
        begun = self._begin_initialize()
        with inside(self._life, alone=True):
            try:
                size = len(registrations) if isinstance(registrations, list | tuple) else 0
                self._tell([begun], total_registrations=size)
                self._initialize(registrations)
            finally:
                self._life.give_back()
        self._complete_requested_stop()

    async def ainitialize(self, registrations: object) -> None:
        """Do the same as ``initialize``, from a coroutine.

        Args:
            registrations: as for ``initialize``.
        """
        await asyncio.to_thread(then_close, self.initialize, registrations)

    def _begin_initialize(self) -> type[Event]:
        try:
            if is_inside(self._life, alone=True):
                raise BusyError("it was called by a receiver of its own initialize() or stop()")
            while not (begun := self._life.begin_initialize(from_inside=self.is_inside)):
                self.stop()
            return begun
        except BusyError as error:
            raise ScheduleTaskError(self._options().DEPLOYMENT, "", error) from error

    def _initialize(self, registrations: object) -> None:
        is_running = self.state is State.REINITIALIZING
        try:
            declarations = self._declare(registrations)
            written = self._activate(declarations, is_running=is_running)
        except BaseException as error:
            name = type(error).__name__
            reason = error.message if isinstance(error, DeclarativeCronError) else name
            self._tell([self._life.conclude(Step.FAIL)], error=reason)
            raise
        total = len(declarations)
        self._tell(
            [self._life.conclude(Step.SUCCEED)],
            total_registrations=total,
            scheduled_count=written,
            skipped_count=total - written,
        )
        self._tell(self._life.poll(active=bool(declarations)))
        if self._background:
            for thread in (self._heartbeat, self._loop, self._sink):
                thread.start()
            watch = watchers.again if self._is_watching else watchers.begin
            self._is_watching = True
            watch(declarations, lambda: self._engine.member)
        # The loop may have gone to sleep without an end before there were tasks.
        self._engine.woken.set()

    def _activate(self, declarations: Sequence[Declaration], *, is_running: bool) -> int:
        """Make a registration set the active one; return the number of tasks that were written.

        Raises:
            ScheduleTaskError: it failed; nothing has changed.
        """
        engine, options = self._engine, self._options()
        member = member_of(options, self.clock, self.id, digest_of_set(declarations))
        try:
            if is_running and _is_active(engine, member):
                engine.replace(declarations)
                return 0
            # A run with an ended callback does not count as running for the new set.
            engine.record(self.clock.now())
            done = self._swap(member, declarations, self.clock.now(), self._terms)
        except ScheduleTaskError:
            raise
        except Exception as error:
            only = declarations[0] if len(declarations) == 1 else None
            name, cron = (only.name, only.cron) if only else (member.deployment, "")
            raise ScheduleTaskError(name, cron, error) from error
        publish(done.events)
        if done.role is Role.SUPERSEDED:
            return 0
        _tell_scheduled(self.clock.now(), declarations)
        return len(declarations) - len(done.plan.unchanged)

    def _swap(
        self, member: Member, declarations: Sequence[Declaration], now: datetime, terms: Terms
    ) -> reconcile.Reconciled:
        """Reconcile the rows and make the engine adopt the set, with no tick in between."""
        engine, process = self._engine, this_process(self._options())
        with engine.gate:
            began = engine.validity.moment()
            done = reconcile.reconcile(member, process, declarations, now, terms, engine.candidacy)
            engine.validity.renew(began, member.longest_silence)
            engine.adopt(member, declarations, done.role)
        return done

    # --- passes ---

    def tick(self, now: datetime | None = None) -> datetime | None:
        """Do one pass; the loop calls this, and a simulation does.

        Args:
            now: the instant of the pass; the clock's unless given.

        Returns:
            when the next one is needed, as far as is known.
        """
        began = Moment(self.clock.monotonic(), now) if now else moment(self.clock)
        with inside(self._life):
            following = self._engine.tick(began)
            if self._activate_again(began.at):
                following = self._engine.tick(began)
        if self._engine.has_tasks or not self._engine.executor.unfinished:
            # Tasks are also registered and removed over HTTP.
            self._tell(self._life.poll(active=self._engine.has_tasks), began.at)
        self._complete_requested_stop()
        return following

    def next_wake(self) -> datetime | None:
        """Return when the next task is to be considered."""
        return self._engine.next_wake()

    def tick_once(self) -> None:
        """Do the one pass of a scheduler without a loop, and stay alive for its runs."""
        self._heartbeat.start()
        self._sink.start()
        self.tick()

    def record(self, now: datetime | None = None) -> None:
        """Write the results that are waiting, and start nothing.

        Args:
            now: the instant of the pass; the clock's unless given.
        """
        with inside(self._life):
            self._engine.record(now or self.clock.now())

    def beat(self) -> None:
        """Write a heartbeat, as the heartbeat's thread does in the background."""
        if self._engine.member is not None:
            self._heartbeat.once(self._engine.member)

    def _activate_again(self, now: datetime) -> bool:
        """Activate the own set again if rows were deleted, or no instance holds the active one."""
        try:
            if not self._engine.is_to_activate_again(now):
                return False
            with self._life.turn_if_free() as free, inside(self._life, alone=True):
                member = self._engine.member
                if free and member is not None:
                    declarations = self._engine.declarations
                    self._report_mismatch(member, declarations, now)
                    publish(self._swap(member, declarations, now, Terms.ORPHANED).events)
                return free
        except (DatabaseError, ScheduleTaskError) as error:
            self._engine.refused("looking after the registration set", error, now)
            return False

    def _report_mismatch(
        self, member: Member, declarations: Sequence[Declaration], now: datetime
    ) -> None:
        if self.role is Role.LEADING:
            found = reconcile.mismatch(member, declarations)
            if found is not None:
                self._engine.refused("keeping the rows of the declared tasks", found, now)

    # --- stop ---

    def stop(self, *, grace: timedelta | None = None) -> bool:
        """Start nothing more and wait until every run has ended (004 S3).

        It waits for an initialisation that is under way; stops at the same time share one
        shutdown. A callback or a receiver that calls it would wait for itself: there it returns
        ``False`` immediately, nothing more starts, and the stop completes when every run has
        ended.

        Args:
            grace: the longest wait; without limit unless given. Runs that have not
                ended by then are later found interrupted.

        Returns:
            whether every run had ended.

        Raises:
            StopSchedulerError: results could not be recorded.
        """
        self.request_stop()
        if self.is_inside:
            return False
        seconds = None if grace is None else grace.total_seconds()
        deadline = None if seconds is None else self.clock.monotonic() + seconds
        if self._life.begin_shutdown(seconds=seconds):
            self._shut_down(deadline)
        return not self._life.is_stopping

    async def astop(self) -> bool:
        """Do the same as ``stop``, from a coroutine."""
        return bool(await asyncio.to_thread(then_close, self.stop))

    def request_stop(self) -> None:
        """Start nothing more from now on, and return immediately."""
        with self._life.asking_to_stop() as told:
            if told:
                self._engine.request_stop()
        self._tell(told)

    def _complete_requested_stop(self) -> None:
        """Complete a stop that no caller waits for, once every run has ended."""
        if self.state is not State.STOPPING or is_inside(self._life, alone=True):
            return
        self._engine.write_down_stop(self.clock.now())
        if self._engine.executor.unfinished or not self._life.begin_shutdown(seconds=0):
            return
        try:
            self._shut_down(None)
        except StopSchedulerError as error:
            report("Leaving the deployment", error)

    def _shut_down(self, deadline: float | None) -> None:
        told: list[type[Event]] = []
        try:
            with inside(self._life, alone=True):
                self._engine.write_down_stop(self.clock.now())
                if drain(self._engine, deadline):
                    self._sink.stop(deadline)
                    self._leave(told)
        finally:
            self._life.give_back()
            # A receiver may initialize again, so the turn is free by now.
            self._tell(told)

    def _leave(self, told: list[type[Event]]) -> None:
        """Leave the deployment, once every run has ended."""
        for thread in (self._loop, self._heartbeat):
            thread.stop()
        try:
            if (member := self._engine.member) is not None:
                liveness.leave(member, self.clock.now())
        except DatabaseError as error:
            raise StopSchedulerError(error) from error
        finally:
            self._engine.runners.close()
            if self._is_watching:
                watchers.end()
            self._renew()
            told += self._life.finish()

    def abandon(self) -> None:
        """Leave runs in flight to the next leader; to be called only as the process ends."""
        self._heartbeat.stop()
        if self._engine.member is not None:
            liveness.give_up(self._engine.member)

    def _tell(
        self, kinds: Iterable[type[Event]], at: datetime | None = None, **values: Any
    ) -> None:
        """Publish events of the lifecycle, each with those values that it has."""
        now = at or self.clock.now()
        publish(
            kind(at=now, **{f.name: values[f.name] for f in fields(kind) if f.name in values})
            for kind in kinds
        )


def _is_active(engine: Engine, member: Member) -> bool:
    mine = engine.member
    if mine is None or mine.digest != member.digest:
        return False
    return reconcile.active_digest(member.using, member.deployment) == member.digest


def _tell_scheduled(now: datetime, declarations: Sequence[Declaration]) -> None:
    if is_heard(events.TaskScheduled):
        publish(
            events.TaskScheduled(
                at=now,
                task_name=declaration.name,
                cron_expression=declaration.cron,
                retry_delay_ms=declaration.retry_delay_ms,
            )
            for declaration in declarations
        )
