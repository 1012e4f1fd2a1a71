"""What the process of a run does: call the callback, and say how it ended."""

from __future__ import annotations

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
from datetime import datetime
from types import FrameType
from typing import Any

from django.db import connections

from ... import targets
from ...core.declaration import Target
from ...store.results import Result
from .. import forking, tracing
from ..clock import system_clock
from ..connections import leave_pool
from ..context import Run
from ..ended import failed
from ..tail import Tail
from ..work import Work, perform
from . import limits
from .talk import Talk
from .wire import UNHEARD, Lines, pack_result, unpack_member

_LOOKS_FOR_WORD, _BETWEEN_LOOKS = 50, 0.01
_LOOK_AGAIN = 0.5


class RunEndedError(BaseException):
    """Tell a callback in a process that its run is to end; raised wherever it is.

    It is no ``Exception``, so that ``except Exception`` does not hold it up.
    """


class _SentTail(Tail):
    """Lines that go to the scheduler at once, so that they outlive this process."""

    def __init__(self, talk: Talk) -> None:
        super().__init__()
        self._talk = talk

    def add(self, line: str) -> None:
        self._talk.say(log=line)


class _Listener:
    """Hear what the scheduler says while the callback runs."""

    def __init__(self, talk: Talk, work: Work, lines: Lines, said: list[dict[str, Any]]) -> None:
        self._talk = talk
        self._said = said
        self._work = work
        self._lines = lines
        self._parent = os.getppid()
        self._is_to_stop = False

    def start(self) -> None:
        """Begin, and let a signal end the callback once the scheduler said that it is to end."""
        forking.handle([signal.SIGTERM], self._end)
        threading.Thread(target=self._listen, name="declarative-cron-run", daemon=True).start()

    def _end(self, number: int, frame: FrameType | None) -> None:
        # The word goes another way than the signal, and may come a moment after it.
        # Nothing is locked here: what was interrupted may hold that very lock.
        for _ in range(_LOOKS_FOR_WORD):
            if self._work.ending.asked.is_set():
                raise RunEndedError(self._work.ending.why)
            select.select([], [], [], _BETWEEN_LOOKS)
        # Somebody stops everything around the scheduler, which waits for its runs.
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
        # The callback closed it; whether somebody still waits for the run, the system knows.
        select.select([], [], [], _LOOK_AGAIN)
        return None if os.getppid() == self._parent else b""


def be_run(conversation: socket.socket) -> int:
    """Call one callback in this process, which was forked for it.

    Args:
        conversation: with the scheduler.

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
    """Say how the run ended; the exit code tells where nobody can hear it."""
    with suppress(OSError):
        talk.break_line()
    return 0 if talk.say(ended=pack_result(result)) or talk.is_ours else UNHEARD


def _called(order: dict[str, Any], work: Work) -> Result:
    for alias in connections:
        leave_pool(alias)
    try:
        limits.impose(order["limits"])
        target = targets.again(
            order["callback"], is_command=order["command"], is_from_outside=order["outside"]
        )
        work = replace(work, target=replace(target, args=tuple(order["args"])))
    except BaseException as error:
        return failed(work, error, system_clock.now(), 0.0)
    return perform(work, system_clock)


def _work(order: dict[str, Any], talk: Talk) -> Work:
    tail = _SentTail(talk)
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
        meta=said["meta"],
        max_attempts=said["max_attempts"],
    )
    member = order["member"] and unpack_member(order["member"], system_clock)
    return replace(work, run=run, member=member, trace=order["trace"])


def _heard(talk: Talk, lines: Lines) -> list[dict[str, Any]]:
    """Wait for the order; what was said right after it may come with it."""
    while piece := talk.hear():
        if said := list(lines.add(piece)):
            return said
    return []
