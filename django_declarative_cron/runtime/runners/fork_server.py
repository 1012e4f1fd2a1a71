"""The fork server, and the processes of runs that it forks."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import select
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, NoReturn

from django.db import connections

from ... import callables
from ...callables import preload
from ...core.declarations.declaration import Target
from ...store.results import Result
from .. import forking, tracing
from ..clock import system_clock
from ..connections import close_every, leave_pool
from ..context import Tail
from ..outcome import Ending, failed
from ..work import Work, perform
from . import process_protocol
from .fork_server_client import Order
from .process_protocol import (
    FORK,
    MESSAGE,
    UNHEARD,
    Lines,
    Talk,
    close_quietly,
    pack_result,
    send_line,
    unpack_member,
    unpack_run,
)

_LOOKS_FOR_WORD, _BETWEEN_LOOKS = 50, 0.01
_LOOK_AGAIN = 0.5


class RunEndedError(BaseException):
    """Raised in a callback in a process when its run is to end.

    It is not an ``Exception``, so that ``except Exception`` does not catch it.
    """


class _SentTail(Tail):
    """Lines that are sent to the scheduler immediately, so that they outlive this process."""

    def __init__(self, talk: Talk) -> None:
        super().__init__()
        self._talk = talk

    def add(self, line: str) -> None:
        self._talk.say(log=line)


class _Listener:
    """Read the messages of the scheduler while the callback runs."""

    def __init__(self, talk: Talk, work: Work, lines: Lines, said: list[dict[str, Any]]) -> None:
        self._talk = talk
        self._said = said
        self._work = work
        self._lines = lines
        self._parent = os.getppid()
        self._is_to_stop = False

    def start(self) -> None:
        """Begin; SIGTERM ends the callback once the scheduler has requested that."""
        forking.handle([signal.SIGTERM], self._end)
        threading.Thread(target=self._listen, name="declarative-cron-run", daemon=True).start()

    def _end(self, number: int, frame: FrameType | None) -> None:
        # The request and the signal go different ways, so the request may come a moment later.
        # No lock is used here, because the interrupted code may hold it.
        for _ in range(_LOOKS_FOR_WORD):
            if self._work.ending.asked.is_set():
                raise RunEndedError(self._work.ending.why)
            select.select([], [], [], _BETWEEN_LOOKS)
        # Without a request, the whole group is stopped; the scheduler waits for its runs.
        self._is_to_stop = True

    def _listen(self) -> None:
        self._heed(self._said)
        while (piece := self._next()) != b"":
            self._heed(self._lines.add(piece or b""))
        # The scheduler is gone, and its run with it.
        os.killpg(0, signal.SIGKILL)

    def _heed(self, lines: Iterable[dict[str, Any]]) -> None:
        for said in lines:
            self._is_to_stop |= "stopping" in said
            if "ending" in said:
                self._work.ending.ask(said["ending"])
        if self._is_to_stop:
            self._work.run.stopping.set()

    def _next(self) -> bytes | None:
        if self._talk.is_ours:
            return self._talk.hear(_LOOK_AGAIN)
        # The callback closed it; the system shows whether the parent is still there.
        select.select([], [], [], _LOOK_AGAIN)
        return None if os.getppid() == self._parent else b""


def be_run(conversation: socket.socket) -> int:
    """Call one callback in this process, which was forked for it.

    Returns:
        the exit code of the process.
    """
    talk, lines = Talk(conversation), Lines()
    heard = _heard(talk, lines)
    if not heard:
        return 0
    order, *said = heard
    work = _work(order, talk)
    _Listener(talk, work, lines, said).start()
    try:
        if not talk.say(began=os.getpid()):
            return 0
        result = _called(order, work)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(Exception):
        tracing.flush()
    with suppress(Exception):
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
    with suppress(Exception):
        connections.close_all()
    return _told(talk, result)


def _told(talk: Talk, result: Result) -> int:
    """Send the result; a failure to send it is reported by the exit code."""
    with suppress(OSError):
        talk.break_line()
    return 0 if talk.say(ended=pack_result(result)) or talk.is_ours else UNHEARD


def _called(order: dict[str, Any], work: Work) -> Result:
    for alias in connections:
        leave_pool(alias)
    try:
        process_protocol.impose(order["limits"])
        target = callables.again(
            order["callback"], is_command=order["command"], is_from_outside=order["outside"]
        )
        work = replace(work, target=replace(target, args=tuple(order["args"])))
    except BaseException as error:
        return failed(work, error, system_clock.now(), 0.0)
    return perform(work, system_clock)


def _work(order: dict[str, Any], talk: Talk) -> Work:
    ending = Ending()
    run = unpack_run(order["run"], ending.asked)
    return Work(
        run.id,
        run,
        Target("", lambda: None),
        ending=ending,
        tail=_SentTail(talk),
        member=order["member"] and unpack_member(order["member"], system_clock),
        trace=order["trace"],
    )


def _heard(talk: Talk, lines: Lines) -> list[dict[str, Any]]:
    """Wait for the order; further messages may come with it."""
    while piece := talk.hear():
        if said := list(lines.add(piece)):
            return said
    return []


_TITLE = "cron-processes"
_PR_SET_PDEATHSIG = 1
# A signal to a whole group or container is for the scheduler, which ends its runs itself.
_IGNORED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")


@dataclass(slots=True)
class _Child:
    """A process of a run; when it was signalled, its whole group ends with it."""

    key: int
    conversation: socket.socket
    was_signalled: bool = False


class ForkServer:
    """Fork processes, pass signals on, and report how each process ended.

    Args:
        control: the conversation with the scheduler.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, _Child] = {}
        self._ended, self._news = os.pipe()
        os.set_blocking(self._ended, False)
        os.set_blocking(self._news, False)

    def serve(self) -> None:
        """Serve until the scheduler is gone or closes the conversation."""
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
            # The scheduler was killed before it read all answers.
            return False
        if len(message) < MESSAGE.size:
            close_quietly(*descriptors)
            return False
        kind, key, number = MESSAGE.unpack(message)
        if kind == FORK:
            self._fork(key, *descriptors)
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
            # This copy of the server must never serve.
            os._exit(code)

    def _signal(self, key: int, number: int) -> None:
        for pid, child in self._children.items():
            if child.key == key:
                child.was_signalled = True
                _signal_group(pid, number)

    def _reap(self) -> None:
        for pid in list(self._children):
            # Its number is not used again before it is waited for.
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                continue
            child = self._children.pop(pid)
            if child.was_signalled or ended.si_code != os.CLD_EXITED:
                # Programs that it started must not go on during the next attempt.
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
        # It does not lead a group yet.
        with suppress(OSError):
            os.kill(pid, number)


def _end_with_parent(server: int) -> None:
    """Make the kernel end this process with the server, where the kernel supports it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(1)


def _load(paths: list[str]) -> None:
    """Import the callbacks, so that each run finds them loaded."""
    preload(paths)
    close_every()
    gc.collect()
    # Objects that are not touched stay shared between all runs.
    gc.freeze()


def main(given: str) -> None:
    """Run the fork server; Django is set up."""
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
    """Restore the scheduler's ``PYTHONPATH`` for programs that a run starts."""
    os.environ.pop("PYTHONPATH", None)
    if value is not None:
        os.environ["PYTHONPATH"] = value


def _take_back_standard_error(errors: int) -> None:
    """Print the output of loading, which the scheduler reads only after a failure."""
    sys.stderr.flush()
    with os.fdopen(os.dup(2), "rb") as kept:
        kept.seek(0)
        said = kept.read()
    os.ftruncate(2, 0)
    os.dup2(errors, 2)
    os.close(errors)
    sys.stderr.buffer.write(said)
    sys.stderr.flush()
