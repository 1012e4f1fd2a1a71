"""The watchdog process: it vouches for a scheduler, and marks it as dead when it is gone."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn
from uuid import UUID

from ..conf import Options
from ..signals import report
from ..store import liveness
from ..store.guard import Member
from . import forking
from .clock import Clock
from .connections import close_every
from .fencing import member_of
from .forking import Owned, out_of_the_way
from .shutdown import SIGNALS

FAREWELL = b"farewell\n"

Action = Callable[[Member], object]

_LOOK_AT_THE_PARENT = 1.0
_AGAIN = 0.5
_DYING = 2.0
_TITLE = "cron-watchdog"


class Watch:
    """The loop of a watchdog process.

    Args:
        member: the scheduler; its instance is read from the pipe.
        clock: the time source for overdue lines.
        pipe: receives a line after each heartbeat.
        is_there: returns whether the scheduler's process exists.
        do: calls a function within so many seconds, and returns whether it succeeded.
    """

    def __init__(
        self,
        member: Member,
        clock: Clock,
        pipe: int,
        is_there: Callable[[], bool],
        do: Callable[[Action, Member, float], bool],
    ) -> None:
        self._clock = clock
        self._is_there = is_there
        self._do = do
        self._member = member
        self._pipe = pipe
        self._is_known = False
        self._closed_at: float | None = None
        self._renew = member.renew.total_seconds()
        self._silence = member.longest_silence.total_seconds()
        # A quarter of the time that is left after a heartbeat, so that a retry is possible.
        self._margin = (self._silence - self._renew) / 4
        self._overdue_at = 0.0

    def keep(self) -> None:
        """Watch until the scheduler takes its leave or is gone."""
        while self._is_there():
            lines = self._lines(self._seconds())
            if FAREWELL in lines:
                return
            if lines:
                self._hear(lines[-1])
            elif self._is_known and self._clock.monotonic() >= self._overdue_at:
                self._vouch()
        if FAREWELL not in self._lines(0.0) and self._is_known:
            self._mark_as_dead()

    def _hear(self, line: bytes) -> None:
        self._member = replace(self._member, instance=UUID(line.decode().strip()))
        self._is_known = True
        self._overdue_at = self._clock.monotonic() + self._renew + self._margin

    def _vouch(self) -> None:
        done = self._do(liveness.vouch, self._member, self._margin)
        self._overdue_at = self._clock.monotonic() + (self._renew if done else _AGAIN)

    def _mark_as_dead(self) -> None:
        """Mark the scheduler as dead; after the longest silence it counts as dead anyway."""
        deadline = self._clock.monotonic() + self._silence
        while not self._do(liveness.give_up, self._member, self._margin):
            if self._clock.monotonic() >= deadline:
                return
            self._wait(_AGAIN)

    def _seconds(self) -> float:
        """Return how long it may wait for the next line."""
        now = self._clock.monotonic()
        if self._closed_at is not None and now - self._closed_at < _DYING:
            return 0.02  # The descriptors of a process close shortly before it is gone.
        if not self._is_known:
            return _LOOK_AT_THE_PARENT
        return min(max(self._overdue_at - now, 0.0), _LOOK_AT_THE_PARENT)

    def _lines(self, seconds: float) -> list[bytes]:
        if self._closed_at is not None:
            # A callback may have closed the pipe.
            self._wait(seconds)
            return []
        readable, _, _ = select.select([self._pipe], [], [], seconds)
        if not readable:
            return []
        read = os.read(self._pipe, 65536)
        if not read:
            self._closed_at = self._clock.monotonic()
        return read.splitlines(keepends=True)

    def _wait(self, seconds: float) -> None:
        select.select([], [], [], seconds)


def run_watchdog(member: Member, clock: Clock, *, pipe: int, parent: int) -> NoReturn:
    """Run the watchdog, and end the process; to be called right after the fork."""
    code = 1
    try:
        pipe = _leave_what_was_inherited(pipe)
        # The kernel assigns another parent to a process when its parent has ended.
        Watch(member, clock, pipe, lambda: os.getppid() == parent, do_in_child).keep()
        code = 0
    finally:
        os._exit(code)


def do_in_child(action: Action, member: Member, seconds: float) -> bool:
    """Call a function in a process of its own, with a time limit; return whether it succeeded.

    A database that does not answer then delays nothing else, and no connection stays open.
    """
    try:
        child = os.fork()
    except OSError:
        return False
    if child == 0:
        code = 1
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            action(member)
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def _leave_what_was_inherited(pipe: int) -> int:
    """Drop signals, descriptors and the name; return the pipe's new descriptor."""
    forking.become_helper(_TITLE)
    for number in (signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # Memory that is not touched stays shared with the scheduler.
    gc.disable()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.dup2(pipe, 3)
    for descriptor in map(int, os.listdir("/dev/fd")):
        if descriptor > 3:
            with suppress(OSError):
                os.close(descriptor)
    return 3


_NOBODY = UUID(int=0)
_LONGEST_FAREWELL = 2.0


class WatchdogGoneError(RuntimeError):
    """Report that a watchdog process ended before its scheduler."""


class WatchdogProcess:
    """The scheduler's end of its watchdog process.

    Args:
        pid: of the watchdog.
        pipe: where it reads; written to here.
        clock: by which its end is waited for.
    """

    def __init__(self, pid: int, pipe: int, clock: Clock) -> None:
        self.pid = pid
        self._pipe = Owned(pipe)
        forking.close_in_children(pipe)
        self._clock = clock
        self._ended = False
        self._lock = threading.Lock()

    @property
    def is_alive(self) -> bool:
        """Return whether it runs; a process that has ended is waited for."""
        with self._lock:
            return not self._has_ended(os.WNOHANG)

    def heard(self, member: Member) -> None:
        """Pass on a heartbeat that the scheduler wrote itself."""
        if self._ended:
            return
        if self.is_alive:
            self._write(f"{member.instance}\n".encode())
        else:
            gone = WatchdogGoneError(f"process {self.pid} has ended")
            report("The watchdog process", gone, then="the heartbeat goes on without it")

    def dismiss(self) -> None:
        """End it, and wait for the end, after the scheduler has left."""
        with self._lock:
            if self._has_ended(os.WNOHANG):
                return
            self._write(FAREWELL)
            deadline = self._clock.monotonic() + _LONGEST_FAREWELL
            while not self._has_ended(os.WNOHANG) and self._clock.monotonic() < deadline:
                self._clock.wait(threading.Event(), 0.005)
            if not self._ended:
                os.kill(self.pid, signal.SIGKILL)
                self._has_ended(0)

    def _write(self, line: bytes) -> None:
        # A full pipe means that it is stopped, a broken one that it is gone.
        with suppress(OSError):
            if self._pipe.is_ours:
                os.write(self._pipe.number, line)

    def _has_ended(self, options: int) -> bool:
        if not self._ended:
            try:
                self._ended = os.waitpid(self.pid, options)[0] == self.pid
            except ChildProcessError:
                # Another part of this process waited for it.
                self._ended = True
            if self._ended:
                with suppress(OSError):
                    if self._pipe.is_ours:
                        os.close(self._pipe.number)
        return self._ended


def can_fork() -> bool:
    """Return whether a forked process can use libraries; those of macOS may abort it."""
    return hasattr(os, "fork") and sys.platform != "darwin"


def fork_watchdog(options: Options, clock: Clock) -> WatchdogProcess | None:
    """Fork a watchdog process, where options and system allow that.

    To be called in the main thread of a process that becomes a scheduler, before it has threads;
    its database connections are closed.
    """
    if not options.WATCHDOG_PROCESS or not can_fork():
        return None
    member = member_of(options, clock, _NOBODY)
    close_every()
    read, write = _pipe()
    parent = os.getpid()
    # Until the child ignores them.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        pid = forking.fork()
        if pid == 0:
            run_watchdog(member, clock, pipe=read, parent=parent)
    except OSError as error:
        report("Starting the watchdog process", error, then="the scheduler goes on without it")
        os.close(write)
        return None
    finally:
        os.close(read)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    return WatchdogProcess(pid, write, clock)


def _pipe() -> tuple[int, int]:
    read, write = os.pipe()
    write = out_of_the_way(write)
    os.set_blocking(write, False)
    return read, write
