"""The fork server, and the processes of runs that it forks."""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
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
    UNHEARD,
    Talk,
    close_quietly,
    pack_result,
    send_line,
    unpack_member,
    unpack_run,
)


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


def be_run(conversation: socket.socket) -> int:
    """Call one callback in this process, which was forked for it.

    Returns:
        the exit code of the process.
    """
    talk = Talk(conversation)
    messages = talk.messages()
    order = next(messages, None)
    if order is None:
        return 0
    work = _work(order, talk)
    forking.handle([signal.SIGTERM], partial(_end, work))
    threading.Thread(
        target=_listen, args=(talk, messages, work), name="declarative-cron-run", daemon=True
    ).start()
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
    code = _told(talk, result)
    if work.ending.asked.is_set():
        # Programs that it started must not go on during the next attempt. Its group is its own
        # as long as it lives; later its number may be that of another run.
        os.killpg(0, signal.SIGKILL)
    return code


def _listen(talk: Talk, messages: Iterable[dict[str, Any]], work: Work) -> None:
    """Follow the messages of the scheduler while the callback runs."""
    for said in messages:
        if "stopping" in said:
            work.run.stopping.set()
        if "ending" in said:
            work.ending.ask(said["ending"])
            # It ends the callback, and asks the programs that the run started to end.
            os.killpg(0, signal.SIGTERM)
    if talk.is_ours:
        # The scheduler is gone, and its run with it.
        os.killpg(0, signal.SIGKILL)


def _end(work: Work, number: int, frame: FrameType | None) -> None:
    """End the callback if its run is to end.

    Other signals do not end it: a container that stops asks the scheduler, which waits for its
    runs.
    """
    if work.ending.asked.is_set():
        raise RunEndedError(work.ending.why)


def _told(talk: Talk, result: Result) -> int:
    """Send the result; a failure to send it is reported by the exit code."""
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
        return failed(work, error, system_clock.now())
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


_TITLE = "cron-processes"
_PR_SET_PDEATHSIG = 1


class ForkServer:
    """Fork processes, and report how each of them ended.

    Args:
        control: the conversation with the scheduler.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._conversations: dict[int, socket.socket] = {}
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
            if self._control.fileno() in ready and not self._fork():
                break
        for pid in self._conversations:
            _kill_group(pid)

    def _fork(self) -> bool:
        """Fork the process of a run; return whether the scheduler is still there."""
        try:
            message, descriptors, _, _ = socket.recv_fds(self._control, len(FORK), 2)
        except ConnectionError:
            # The scheduler was killed before it read all answers.
            return False
        if not message:
            return False
        talk, output = descriptors
        conversation, server = socket.socket(fileno=talk), os.getpid()
        try:
            pid = forking.fork()
        except OSError as error:
            with suppress(OSError):
                send_line(conversation, refused=str(error))
            conversation.close()
        else:
            if pid == 0:
                self._be_run(conversation, output, server)
            self._conversations[pid] = conversation
        finally:
            os.close(output)
        return True

    def _be_run(self, conversation: socket.socket, output: int, server: int) -> NoReturn:
        code = 1
        try:
            _end_with_parent(server)
            # The leader of a session cannot leave its group.
            os.setsid()
            signal.set_wakeup_fd(-1)
            for number in (*forking.IGNORED, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            close_quietly(self._control.fileno(), self._ended, self._news)
            for other in self._conversations.values():
                other.close()
            os.dup2(output, 1)
            os.dup2(output, 2)
            code = be_run(conversation)
        finally:
            # This copy of the server must never serve.
            os._exit(code)

    def _reap(self) -> None:
        for pid in list(self._conversations):
            # Its number is not used again before it is waited for.
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                continue
            if ended.si_code != os.CLD_EXITED:
                # Programs that it started must not go on during the next attempt.
                _kill_group(pid)
            _, status = os.waitpid(pid, 0)
            with self._conversations.pop(pid) as conversation, suppress(OSError):
                conversation.sendall(b"\n")
                send_line(conversation, exit=os.waitstatus_to_exitcode(status))


def _kill_group(pid: int) -> None:
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


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
    order = Order(**json.loads(given))
    _restore_python_path(order.python_path)
    forking.become_helper(_TITLE)
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
