"""What the process of a run does: call the callback, and say how it ended."""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from types import FrameType
from typing import Any

from django.db import connections

from ... import targets
from ...core.declaration import Target
from ...store.results import Result
from ..clock import system_clock
from ..context import Run
from ..ended import failed
from ..tail import Tail
from ..work import Work, perform
from . import limits
from .wire import MOST_AT_ONCE, Lines, pack_result, send_line, unpack_member

_LOOKS_FOR_WORD, _BETWEEN_LOOKS = 50, 0.01


class RunEndedError(BaseException):
    """Tell a callback in a process that its run is to end; raised wherever it is.

    It is no ``Exception``, so that ``except Exception`` does not hold it up.
    """


class _SentTail(Tail):
    """Lines that go to the scheduler at once, so that they outlive this process."""

    def __init__(self, conversation: socket.socket) -> None:
        super().__init__()
        self._conversation = conversation
        self._lock_of_lines = threading.Lock()

    def add(self, line: str) -> None:
        with suppress(OSError), self._lock_of_lines:
            send_line(self._conversation, log=line)


class _Listener:
    """Hear what the scheduler says while the callback runs."""

    def __init__(self, conversation: socket.socket, work: Work, lines: Lines) -> None:
        self._conversation = conversation
        self._work = work
        self._lines = lines

    def start(self) -> None:
        """Begin, and let a signal end the callback once the scheduler said that it is to end."""
        signal.signal(signal.SIGTERM, self._end)
        threading.Thread(target=self._listen, name="declarative-cron-run", daemon=True).start()

    def _end(self, number: int, frame: FrameType | None) -> None:
        # The word goes another way than the signal, and may come a moment after it.
        # Nothing is locked here: what was interrupted may hold that very lock.
        for _ in range(_LOOKS_FOR_WORD):
            if self._work.ending.asked.is_set():
                raise RunEndedError(self._work.ending.why)
            select.select([], [], [], _BETWEEN_LOOKS)
        # Somebody stops everything around the scheduler, which waits for its runs.
        self._work.run.stopping.set()

    def _listen(self) -> None:
        while piece := _received(self._conversation):
            for said in self._lines.add(piece):
                if said.get("stopping"):
                    self._work.run.stopping.set()
                if "ending" in said:
                    self._work.ending.ask(said["ending"])
        # The scheduler is gone, and its run with it.
        os.killpg(0, signal.SIGKILL)


def be_run(conversation: socket.socket) -> None:
    """Call one callback in this process, which was forked for it.

    Args:
        conversation: with the scheduler.
    """
    lines = Lines()
    order = _order(conversation, lines)
    if order is None:
        return
    work = _work(order, conversation)
    _Listener(conversation, work, lines).start()
    try:
        send_line(conversation, began=os.getpid())
        result = _called(order, work)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(Exception):
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
    connections.close_all()
    with suppress(OSError):
        send_line(conversation, ended=pack_result(result))


def _called(order: dict[str, Any], work: Work) -> Result:
    try:
        limits.impose(order["limits"])
        target = targets.again(order["callback"], is_command=order["command"])
        work = replace(work, target=replace(target, args=tuple(order["args"])))
    except BaseException as error:
        return failed(work, error, system_clock.now(), 0.0)
    return perform(work, system_clock)


def _work(order: dict[str, Any], conversation: socket.socket) -> Work:
    tail = _SentTail(conversation)
    nothing = Target("", lambda: None)
    stopping = threading.Event()
    work = Work(order["id"], None, nothing, lambda result: None, tail=tail)  # type: ignore[arg-type]
    said = order["run"]
    run = Run(
        task_name=said["task_name"],
        scheduled_for=datetime.fromisoformat(said["scheduled_for"]),
        started_at=datetime.fromisoformat(said["started_at"]),
        attempt=said["attempt"],
        reason=said["reason"],
        timezone=said["timezone"],
        stopping=stopping,
        cancelled=work.ending.asked,
        id=order["id"],
    )
    member = order["member"] and unpack_member(order["member"], system_clock)
    return replace(work, run=run, member=member)


def _order(conversation: socket.socket, lines: Lines) -> dict[str, Any] | None:
    while piece := _received(conversation):
        for said in lines.add(piece):
            return said
    return None


def _received(conversation: socket.socket) -> bytes:
    try:
        return conversation.recv(MOST_AT_ONCE)
    except OSError:
        return b""
