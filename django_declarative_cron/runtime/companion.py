"""A small process beside a scheduler that says that it lives, when it cannot say so itself.

A callback that keeps Python's one interpreter lock keeps every thread of its process from
working, the heartbeat's too. Others would take the process for dead and start its runs a
second time. So ``runscheduler`` forks a companion before it has threads:

- The scheduler's own heartbeat writes a line into a pipe after each sign of life. While
  the lines come, the companion does nothing: no query, no connection.
- When a line is overdue and the scheduler still is there, the companion vouches for it:
  it renews the sign of life, never the lease. Who cannot work does not lead.
- When the scheduler is gone without a farewell, the companion counts it as dead at once,
  so that its runs and its lead are taken over within about a second.
- It outlives a signal to the whole group, and it outlives the scheduler by no more than
  the longest silence: by then everybody sees what it has to tell.

Without a companion (no ``fork``, or switched off) the thread of the heartbeat alone says
that the process lives, and a crash is found out when the silence has lasted.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from contextlib import suppress
from uuid import UUID

from ..conf import Options
from ..signals import report
from ..store import database
from ..store.guard import Member
from . import forking
from .clock import Clock
from .connections import close_every
from .descriptors import identity, out_of_the_way
from .shutdown import SIGNALS
from .vouching import FAREWELL, be_companion

_NOBODY = UUID(int=0)
_LONGEST_FAREWELL = 2.0


class CompanionGoneError(RuntimeError):
    """Tell that a companion ended before its scheduler."""


class Companion:
    """What a scheduler has of its companion.

    Args:
        pid: of the companion.
        pipe: where it reads; written to here.
        clock: by which its end is waited for.
    """

    def __init__(self, pid: int, pipe: int, clock: Clock) -> None:
        self.pid = pid
        self._pipe = pipe
        self._identity = identity(pipe)
        forking.close_in_children(pipe)
        self._clock = clock
        self._ended = False
        self._lock = threading.Lock()

    @property
    def is_alive(self) -> bool:
        """Tell whether it is there; one that has ended does not stay as a zombie."""
        with self._lock:
            return not self._has_ended(os.WNOHANG)

    def heard(self, member: Member) -> None:
        """Take note of a sign of life that the scheduler gave itself.

        Args:
            member: who lives.
        """
        if self._ended:
            return
        if self.is_alive:
            self._write(f"{member.instance}\n".encode())
        else:
            gone = CompanionGoneError(f"process {self.pid} has ended")
            report("The companion process", gone, then="the heartbeat goes on without it")

    def dismiss(self) -> None:
        """Let it end, and wait for that: the scheduler has left, or never came."""
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
        # Full: it is stopped and does not read; broken: it is gone, which is seen next time.
        with suppress(OSError):
            if self._is_ours:
                os.write(self._pipe, line)

    @property
    def _is_ours(self) -> bool:
        """Tell whether the pipe's number stands for the pipe still, and not for another file."""
        return identity(self._pipe) == self._identity

    def _has_ended(self, options: int) -> bool:
        if not self._ended:
            try:
                self._ended = os.waitpid(self.pid, options)[0] == self.pid
            except ChildProcessError:
                # Somebody else waited for it: the first process of a container, perhaps.
                self._ended = True
            if self._ended:
                with suppress(OSError):
                    if self._is_ours:
                        os.close(self._pipe)
        return self._ended


def can_fork() -> bool:
    """Tell whether a forked process can go on to use libraries; those of macOS may abort it."""
    return hasattr(os, "fork") and sys.platform != "darwin"


def accompany(options: Options, clock: Clock) -> Companion | None:
    """Fork a companion, where options and system allow that.

    To be called in the main thread by a process that is to be a scheduler and nothing
    else, before it has threads; its database connections are closed.

    Args:
        options: of the scheduler.
        clock: source of time.
    """
    if not options.COMPANION or not can_fork():
        return None
    member = Member(
        using=database.alias(),
        deployment=options.DEPLOYMENT,
        instance=_NOBODY,
        digest="",
        lease=options.LEASE,
        renew=options.RENEW,
        database_time=clock.database_time(),
        dead_after=options.DEAD_AFTER,
    )
    close_every()
    read, write = _pipe()
    parent = os.getpid()
    # Until the child ignores them, which is a moment after it is there.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        pid = _fork()
        if pid == 0:
            be_companion(member, clock, pipe=read, parent=parent)
    except OSError as error:
        report("Starting the companion process", error, then="the scheduler goes on without it")
        os.close(write)
        return None
    finally:
        os.close(read)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    return Companion(pid, write, clock)


def _pipe() -> tuple[int, int]:
    read, write = os.pipe()
    write = out_of_the_way(write)
    os.set_blocking(write, False)
    return read, write


def _fork() -> int:
    with warnings.catch_warnings():
        # A library may have threads already. What they have locked stays locked in the
        # child, which needs nothing of it; its own children end by their time limit.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
