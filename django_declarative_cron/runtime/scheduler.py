"""The scheduler: initialize, stop, and the passes between."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.db import Error as DatabaseError

from .. import conf
from ..core.declarations.declaration import Declaration
from ..core.events import Event
from ..exceptions import ScheduleTaskError, StopSchedulerError
from ..signals import report
from ..store import liveness
from ..store.guard import Standing
from ..store.reconcile import Terms
from . import announce
from .activation import Activation
from .clock import Clock, Moment, moment, system_clock
from .connections import then_close
from .drain import drain
from .engine import Engine
from .event_delivery import SinkThread
from .heartbeat import Heartbeat
from .lifecycle import BusyError, Lifecycle, Polling, State, Step
from .loop import Loop, Pulse
from .reentrancy import inside, is_alone, is_inside
from .runners import Load, Runner
from .watchdog import WatchdogProcess
from .watchers import Watching

__all__ = ["Scheduler", "State"]


class Scheduler:
    """Run declared tasks (001 Scheduler Interface).

    ``initialize`` and ``stop`` may be called at any time by any thread, callback or receiver.

    Args:
        clock: source of time; the machine's unless a simulation brings its own.
        runner: calls every callback; the runner of each task unless given.
        background: run the loop and the heartbeat in threads; a simulation ticks by hand.
        options: gives the options; those of ``DECLARATIVE_CRON`` unless given.
        declare: understands registrations; by the project's settings unless given.
        watchdog: the process beside this one that vouches for it, if there is one.
        force: take the place of a set of a newer release too.
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
        self._be_new()

    @property
    def state(self) -> State:
        """Give where the scheduler is in its life, while it changes too."""
        return self._life.state

    @property
    def polling(self) -> Polling:
        """Tell whether due tasks are looked for."""
        return self._life.polling

    @property
    def running(self) -> int:
        """Count the runs whose callback has not ended."""
        return self._engine.running

    @property
    def unrecorded(self) -> int:
        """Count the results that wait to be written."""
        return max(self._engine.unfinished - self._engine.running, 0)

    @property
    def loads(self) -> list[Load]:
        """Give how busy each runner is: threads, coroutines, processes."""
        return self._engine.runners.loads

    @property
    def declarations(self) -> Sequence[Declaration]:
        """Give the registration set this scheduler holds."""
        return self._engine.declarations

    @property
    def standing(self) -> Standing:
        """Give what this instance is to its deployment."""
        return self._engine.standing

    @property
    def is_alive(self) -> bool:
        """Tell whether the threads of the loop and the heartbeat run."""
        return self._loop.is_alive and self._heartbeat.is_alive

    @property
    def pulse(self) -> Pulse:
        """Give what the loop says of itself."""
        return self._loop.pulse

    @property
    def is_inside(self) -> bool:
        """Tell whether the caller is a callback of this scheduler, or a receiver it calls."""
        return is_inside(self._life)

    # --- initialize ---

    def initialize(self, registrations: object) -> None:
        """Make a registration set the active one and begin to run it.

        Repeating it with the same set changes nothing; with another set, the sets
        are swapped in one step. Calls from several threads happen one after another;
        one during a stop waits for its end. A callback may call it too: its own run
        then ends as the new set has it.

        Args:
            registrations: list of 4-tuples and dicts, as in ``SCHEDULED_TASKS``.

        Raises:
            DeclarativeCronError: the first mistake found; nothing was written.
            ScheduleTaskError: the database refused, or a callback asks while the
                scheduler stops and waits for it; everything stands as before.
        """
        begun = self._begin_initialize()
        with inside(self._life, alone=True):
            try:
                size = announce.size(registrations)
                announce.tell([begun], self.clock.now(), total_registrations=size)
                self._initialize(registrations)
            finally:
                self._life.give_back()
        self._stop_if_only_asked()

    async def ainitialize(self, registrations: object) -> None:
        """Do what ``initialize`` does, from a coroutine.

        Args:
            registrations: as for ``initialize``.
        """
        await asyncio.to_thread(then_close, self.initialize, registrations)

    def _begin_initialize(self) -> type[Event]:
        try:
            if is_alone(self._life):
                raise BusyError("it was called by a receiver of its own initialize() or stop()")
            while not (begun := self._life.begin_initialize(from_inside=self.is_inside)):
                self.stop()
            return begun
        except BusyError as error:
            raise ScheduleTaskError(self._options().DEPLOYMENT, "", error) from error

    def _initialize(self, registrations: object) -> None:
        running = self.state is State.REINITIALIZING
        try:
            declarations = self._declare(registrations)
            written = self._activation.activate(self._engine, declarations, running=running)
        except BaseException as error:
            failed = self._life.conclude(Step.FAIL)
            announce.tell([failed], self.clock.now(), error=announce.reason(error))
            raise
        counts = {"total_registrations": len(declarations), "scheduled_count": written}
        counts["skipped_count"] = len(declarations) - written
        announce.tell([self._life.conclude(Step.SUCCEED)], self.clock.now(), **counts)
        self._poll(active=bool(declarations))

    def _poll(self, *, active: bool) -> None:
        """Run the loop; it polls while there is a task (001 Polling Lifecycle)."""
        announce.tell(self._life.poll(active=active), self.clock.now())
        if self._background:
            for thread in (self._heartbeat, self._loop, self._sink, self._watching):
                thread.start()
        # A loop that was woken before may have gone to sleep without an end again.
        self._engine.woken.set()

    # --- passes ---

    def tick(self, now: datetime | None = None) -> datetime | None:
        """Do one pass; the loop calls this, and a simulation does.

        Args:
            now: the instant to take for the present; the clock's unless given.

        Returns:
            when something is to be done next, as far as is known.
        """
        began = Moment(self.clock.monotonic(), now) if now else moment(self.clock)
        with inside(self._life):
            following = self._engine.tick(began)
            if self._activate_again(began.at):
                following = self._engine.tick(began)
        if self._engine.has_tasks or not self._engine.unfinished:
            # Tasks may come and go from outside, beside the set.
            announce.tell(self._life.poll(active=self._engine.has_tasks), began.at)
        self._stop_if_only_asked()
        return following

    def next_wake(self) -> datetime | None:
        """Give when the next task is to be considered."""
        return self._engine.next_wake()

    def tick_once(self) -> None:
        """Do the one pass of a scheduler without a loop, and stay alive for what it starts."""
        self._heartbeat.start()
        self._sink.start()
        self.tick()

    def record(self, now: datetime | None = None) -> None:
        """Write the results that are waiting, and start nothing.

        Args:
            now: the instant to take for the present; the clock's unless given.
        """
        with inside(self._life):
            self._engine.record(now or self.clock.now())

    def beat(self) -> None:
        """Say that this instance lives; the heartbeat's thread does it in the background."""
        if self._engine.member is not None:
            self._heartbeat.once(self._engine.member)

    def _activate_again(self, now: datetime) -> bool:
        """Bring the own set back where its rows are gone, or nobody holds the active one."""
        try:
            if not self._engine.is_to_activate_again(now):
                return False
            with self._life.turn_if_free() as free, inside(self._life, alone=True):
                if free:
                    self._activation.again(self._engine, now)
                return free
        except (DatabaseError, ScheduleTaskError) as error:
            self._engine.refused("looking after the registration set", error, now)
            return False

    # --- stop ---

    def stop(self, *, grace: timedelta | None = None) -> bool:
        """Start nothing more and wait until every run has ended (004 S3).

        An initialisation under way is waited for; stops at the same time share one shutdown. A
        callback that calls it, or a receiver of a signal, would wait for itself: there it returns
        ``False`` at once, nothing more starts, and the stop completes once every run has ended.

        Args:
            grace: the longest wait; without limit unless given. Runs that have not
                ended by then are left to be found interrupted.

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
        """Do what ``stop`` does, from a coroutine."""
        return bool(await asyncio.to_thread(then_close, self.stop))

    def request_stop(self) -> None:
        """Start nothing more from now on; return at once."""
        with self._life.asking_to_stop() as told:
            if told:
                self._engine.request_stop()
        announce.tell(told, self.clock.now())

    def _stop_if_only_asked(self) -> None:
        """Complete a stop that nobody waits for, once every run has ended."""
        if self.state is not State.STOPPING or is_alone(self._life):
            return
        self._engine.write_down_stop(self.clock.now())
        if self._engine.unfinished or not self._life.begin_shutdown(seconds=0):
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
                if drain(self._engine, self.clock, deadline):
                    self._sink.stop(deadline)
                    self._leave(told)
        finally:
            self._life.give_back()
            # Only now, so that a receiver may initialise again.
            announce.tell(told, self.clock.now())

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
            self._watching.stop()
            self._be_new()
            told += self._life.finish()

    def abandon(self) -> None:
        """Leave runs in flight to the next leader; to be called only as the process ends."""
        self._heartbeat.stop()
        if self._engine.member is not None:
            liveness.give_up(self._engine.member)

    # --- parts ---

    def _be_new(self) -> None:
        """Be another instance from now on: what has stopped keeps its row as it is."""
        self.id = uuid.uuid4()
        self._activation = Activation(self.id, self.clock, self._options, self._terms)
        self._engine = engine = Engine(self.clock, self._life, self._options(), self._given_runner)
        self._loop = Loop(self.clock, self.tick, engine.woken, engine.patience)
        self._heartbeat = Heartbeat(
            self.clock, lambda: engine.member, self._watchdog, engine.trust, engine.watched
        )
        self._sink = SinkThread(self.clock, self._options, lambda: engine.member)
        self._watching = Watching(lambda: engine.declarations, lambda: engine.member)
