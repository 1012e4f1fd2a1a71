"""What a companion does: listen, vouch for its scheduler, count it as dead when it is gone."""

from __future__ import annotations

import gc
import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn
from uuid import UUID

from ..store import instances
from ..store.guard import Member
from .clock import Clock

FAREWELL = b"farewell\n"

Deed = Callable[[Member], object]

_LOOK_AT_THE_PARENT = 1.0
_AGAIN = 0.5
_DYING = 2.0
_TITLE = "cron-companion"
_IGNORED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTSTP")


class Watch:
    """The watch of a companion over its scheduler.

    Args:
        member: the scheduler, whatever its instance is.
        clock: by which lines are overdue.
        pipe: where a line comes after each sign of life.
        is_there: tells whether the scheduler is there.
        do: does a deed within so many seconds, and tells whether that was achieved.
    """

    def __init__(
        self,
        member: Member,
        clock: Clock,
        pipe: int,
        is_there: Callable[[], bool],
        do: Callable[[Deed, Member, float], bool],
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
        # A quarter of the time that is left after a renewal: then it can be tried again.
        self._margin = (self._silence - self._renew) / 4
        self._overdue_at = 0.0

    def keep(self) -> None:
        """Watch until a farewell comes or the scheduler is gone."""
        while self._is_there():
            lines = self._lines(self._seconds())
            if FAREWELL in lines:
                return
            if lines:
                self._hear(lines[-1])
            elif self._is_known and self._clock.monotonic() >= self._overdue_at:
                self._vouch()
        if FAREWELL not in self._lines(0.0) and self._is_known:
            self._bury()

    def _hear(self, line: bytes) -> None:
        self._member = replace(self._member, instance=UUID(line.decode().strip()))
        self._is_known = True
        self._overdue_at = self._clock.monotonic() + self._renew + self._margin

    def _vouch(self) -> None:
        done = self._do(instances.vouch, self._member, self._margin)
        self._overdue_at = self._clock.monotonic() + (self._renew if done else _AGAIN)

    def _bury(self) -> None:
        """Count the scheduler as dead; after the longest silence everybody does so anyway."""
        deadline = self._clock.monotonic() + self._silence
        while not self._do(instances.give_up, self._member, self._margin):
            if self._clock.monotonic() >= deadline:
                return
            self._wait(_AGAIN)

    def _seconds(self) -> float:
        """Give how long it may wait for the next line."""
        now = self._clock.monotonic()
        if self._closed_at is not None and now - self._closed_at < _DYING:
            return 0.02  # The descriptors of a process close a little before it is gone.
        if not self._is_known:
            return _LOOK_AT_THE_PARENT
        return min(max(self._overdue_at - now, 0.0), _LOOK_AT_THE_PARENT)

    def _lines(self, seconds: float) -> list[bytes]:
        if self._closed_at is not None:
            # A callback may have closed what it did not know.
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


def be_companion(member: Member, clock: Clock, *, pipe: int, parent: int) -> NoReturn:
    """Be nothing but a companion from now on; to be called right after the fork.

    Args:
        member: the scheduler, whatever its instance is.
        clock: source of time.
        pipe: where a line comes after each sign of life.
        parent: process id of the scheduler.
    """
    code = 1
    try:
        pipe = _leave_what_was_inherited(pipe)
        # A process whose parent is gone belongs to another one: the kernel sees to it.
        Watch(member, clock, pipe, lambda: os.getppid() == parent, do_in_child).keep()
        code = 0
    finally:
        os._exit(code)


def do_in_child(deed: Deed, member: Member, seconds: float) -> bool:
    """Do a deed in a process of its own, which ends with its time.

    A database that does not answer then holds up nothing else, and no connection is kept.

    Args:
        deed: what is done.
        member: for whom.
        seconds: the longest time.

    Returns:
        whether it was done.
    """
    try:
        child = os.fork()
    except OSError:
        return False
    if child == 0:
        code = 1
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            deed(member)
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def _leave_what_was_inherited(pipe: int) -> int:
    """Give up signals, descriptors and the name; return the pipe's new descriptor."""
    for name in _IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    for number in (signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # What nothing touches stays shared with the scheduler: its memory costs nothing.
    gc.disable()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.dup2(pipe, 3)
    for descriptor in map(int, os.listdir("/dev/fd")):
        if descriptor > 3:
            with suppress(OSError):
                os.close(descriptor)
    with suppress(OSError):
        Path("/proc/self/comm").write_text(_TITLE)
    return 3
