"""Process 1 of a container: hands signals on to the scheduler and reaps what is left behind.

Whatever a callback starts and does not wait for becomes a child of process 1, and stays
a zombie until process 1 asks for its end. A scheduler that asked for the end of every
child would take the answer away from ``subprocess``, which waits for its own. So where
the scheduler would be process 1 it becomes the only child of this program, which has
no other children to wait for than those that nobody else does.

The program needs the standard library only, and is run without site packages.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

LONGEST_FAREWELL = 2.0
"""Seconds that are granted to what a killed scheduler leaves behind."""

# Stopping a process, and faults of its own, are not for others.
_OWN = (
    {
        *(signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
        *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT),
        *(signal.SIGTRAP, signal.SIGSYS, signal.SIGPIPE),
    }
    if os.name == "posix"
    else set()
)


def step_aside() -> bool:
    """Go on as the child of a reaper, where this is process 1.

    To be called before there is another thread, because the process is forked: with
    one the process stays what it is, and zombies have to be reaped by an ``--init`` of
    the container.

    Returns:
        whether there is a reaper now.
    """
    if os.getpid() != 1 or threading.active_count() > 1 or not sys.executable:
        return False
    return below_a_reaper()


def below_a_reaper() -> bool:
    """Make this process a reaper, and go on as its child."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _handed_on())
    child = os.fork()
    if child:
        # What is blocked stays so, and a signal that comes meanwhile waits.
        os.execv(sys.executable, [sys.executable, "-I", "-S", __file__, str(child)])
    # In a group of its own: Ctrl-C reaches the reaper's group, and comes once from there.
    os.setpgid(0, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return True


def reap(child: int) -> int:
    """Hand signals on until the child has ended, and reap everything meanwhile.

    Args:
        child: its process id.

    Returns:
        its exit code; 128 + N where signal N has ended it.
    """
    numbers = _handed_on()
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    while True:
        code = _collect(child)
        if code is not None:
            if code >= 128:
                _linger()
            return code
        number = signal.sigwait(numbers)
        if number != signal.SIGCHLD:
            os.kill(child, number)


def _linger() -> None:
    """Let the companion of a scheduler that was killed tell of it: it ends with this process."""
    deadline = time.monotonic() + LONGEST_FAREWELL
    while time.monotonic() < deadline:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            time.sleep(0.01)


def _collect(child: int) -> int | None:
    """Ask for the end of every child that has ended."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if ended == 0:
            return None


def _handed_on() -> set[signal.Signals]:
    return set(signal.Signals) - _OWN


if __name__ == "__main__":
    sys.exit(reap(int(sys.argv[1])))
