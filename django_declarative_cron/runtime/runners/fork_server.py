"""The process that forks a process for each run: it has Django loaded, and nothing open.

It is executed, not forked, so that it inherits no thread, no lock and no connection of the
scheduler; and it has none itself, so that what it forks is whole. It ends when the
scheduler's end of their conversation is closed, which the kernel does for a scheduler that
was killed, and takes its runs with it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import socket
import sys
import threading
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from ...targets import preload
from ..connections import close_every
from .child import be_run
from .entry import Order
from .wire import ANSWER, ASK, FORK, MESSAGE, close_quietly, send_line

_TITLE = "cron-processes"
_PR_SET_PDEATHSIG = 1
# A signal to a whole group or container is for the scheduler, which tells its runs itself.
_IGNORED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")


@dataclass(slots=True)
class _Child:
    """A process of a run.

    Args:
        key: of the run.
        conversation: with the scheduler.
        was_signalled: it was, so that its whole group is to end with it.
    """

    key: int
    conversation: socket.socket
    was_signalled: bool = False


class ForkServer:
    """Fork, pass signals on, and say how each process left.

    Args:
        control: where the scheduler asks.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, _Child] = {}
        self._ended, self._news = os.pipe()
        os.set_blocking(self._ended, False)
        os.set_blocking(self._news, False)

    def serve(self) -> None:
        """Serve until the scheduler is gone or has no use of it any more."""
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._news, warn_on_full_buffer=False)
        while True:
            ready, _, _ = select.select([self._control.fileno(), self._ended], [], [])
            if self._ended in ready:
                with suppress(BlockingIOError):
                    os.read(self._ended, 4096)
                self._reap()
            if self._control.fileno() in ready and not self._obey():
                break
        for pid in self._children:
            _signal_group(pid, signal.SIGKILL)

    def _obey(self) -> bool:
        try:
            message, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE.size, 2)
        except ConnectionError:
            # The scheduler was killed, and left answers unread.
            return False
        if len(message) < MESSAGE.size:
            close_quietly(*descriptors)
            return False
        kind, key, number = MESSAGE.unpack(message)
        if kind == FORK:
            self._fork(key, *descriptors)
        elif kind == ASK:
            with suppress(OSError):
                self._control.send(ANSWER)
        else:
            self._signal(key, number)
        return True

    def _fork(self, key: int, talk: int, output: int) -> None:
        conversation = socket.socket(fileno=talk)
        server = os.getpid()
        try:
            with warnings.catch_warnings():
                # A module of the project may have started a thread when it was imported.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
        except OSError as error:
            with suppress(OSError):
                send_line(conversation, refused=str(error))
            conversation.close()
        else:
            if pid == 0:
                self._be_run(conversation, output, server)
            self._children[pid] = _Child(key, conversation)
        finally:
            os.close(output)

    def _be_run(self, conversation: socket.socket, output: int, server: int) -> NoReturn:
        code = 1
        try:
            _end_with_parent(server)
            os.setsid()
            signal.set_wakeup_fd(-1)
            for name in (*_IGNORED, "SIGCHLD"):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
            close_quietly(self._control.fileno(), self._ended, self._news)
            for child in self._children.values():
                child.conversation.close()
            os.dup2(output, 1)
            os.dup2(output, 2)
            code = be_run(conversation)
        finally:
            # Whatever it was: this copy of the server must never serve.
            os._exit(code)

    def _signal(self, key: int, number: int) -> None:
        for pid, child in self._children.items():
            if child.key == key:
                child.was_signalled = True
                _signal_group(pid, number)

    def _reap(self) -> None:
        for pid in list(self._children):
            # While it is not waited for, its number is nobody else's.
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                continue
            child = self._children.pop(pid)
            if child.was_signalled or ended.si_code != os.CLD_EXITED:
                # What it started is not to go on beside the next attempt.
                _signal_group(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            with suppress(OSError):
                child.conversation.sendall(b"\n")
                send_line(child.conversation, exit=os.waitstatus_to_exitcode(status))
            child.conversation.close()


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except OSError:
        # It has no group of its own yet.
        with suppress(OSError):
            os.kill(pid, number)


def _end_with_parent(server: int) -> None:
    """Let the kernel end this process when the server is gone, where the kernel can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(1)


def _load(paths: list[str]) -> None:
    """Load what runs beside Django, so that each run finds it there."""
    preload(paths)
    close_every()
    gc.collect()
    # What nothing touches stays shared between all runs.
    gc.freeze()


def main(given: str) -> None:
    """Be a fork server; Django is set up.

    Args:
        given: the order of the scheduler.
    """
    order = Order.read(given)
    _restore_python_path(order.python_path)
    for name in _IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    if sys.platform == "linux":
        with suppress(OSError), open("/proc/self/comm", "w") as title:
            title.write(_TITLE)
    _load(order.paths)
    if threading.active_count() > 1:
        names = ", ".join(thread.name for thread in threading.enumerate()[1:])
        sys.stderr.write(
            f"declarative-cron: importing the project started threads ({names}),"
            " which the processes of runs will not have.\n"
        )
    _take_back_standard_error(order.errors)
    ForkServer(socket.socket(fileno=order.control)).serve()


def _restore_python_path(value: str | None) -> None:
    """Let programs that a run starts have the environment of the scheduler."""
    os.environ.pop("PYTHONPATH", None)
    if value is not None:
        os.environ["PYTHONPATH"] = value


def _take_back_standard_error(errors: int) -> None:
    """Print the output of loading, which the scheduler would have read had it failed."""
    sys.stderr.flush()
    with os.fdopen(os.dup(2), "rb") as kept:
        kept.seek(0)
        said = kept.read()
    os.ftruncate(2, 0)
    os.dup2(errors, 2)
    os.close(errors)
    sys.stderr.buffer.write(said)
    sys.stderr.flush()
