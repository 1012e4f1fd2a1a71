"""Messages between the scheduler, its fork server and the processes of runs, and their limits."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from ... import conf
from ...store.guard import Member
from ...store.results import Result
from .. import forking
from ..clock import Clock
from ..context import Run
from ..fencing import member_of
from ..forking import Owned, out_of_the_way

OPTIONS = ("memory_limit", "cpu_limit")
"""Keys of ``options`` that limit a process: bytes, and seconds of the processor."""


def limits_of(options: Mapping[str, Any]) -> dict[str, int]:
    """Return the limits that a task declares."""
    return {key: int(options[key]) for key in OPTIONS if options.get(key)}


def impose(limits: Mapping[str, int]) -> None:
    if not limits or sys.platform == "win32":
        return
    import resource

    memory, seconds = limits.get("memory_limit"), limits.get("cpu_limit")
    if memory is not None:
        # RLIMIT_AS would also count memory that is mapped and never written to.
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    if seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def words_of_signal(number: int, limits: Mapping[str, int]) -> str:
    """Return the name of the signal that ended a process, with the limit that caused it."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if name == "SIGXCPU" and "cpu_limit" in limits:
        return f"{name}: it used the {limits['cpu_limit']} s of the processor that it may"
    return name


FORK = b"F"
"""Asks the server for a process; the ends of its conversation and of its output come with it."""

MOST_AT_ONCE = 64 * 1024

UNHEARD = 97
"""Exit code of a process whose callback closed the conversation of its run."""


def send_line(conversation: socket.socket, **said: Any) -> None:
    """Send one message.

    Raises:
        OSError: the other end is closed.
    """
    conversation.sendall(json.dumps(said).encode() + b"\n")


class Lines:
    """Messages out of the pieces in which they are received."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, piece: bytes) -> Iterator[dict[str, Any]]:
        """Return the messages that a piece completes."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            try:
                said = json.loads(line)
            except ValueError:
                continue  # Its sender was killed while it wrote.
            if isinstance(said, dict):
                yield said


def pack_result(result: Result) -> dict[str, Any]:
    said = asdict(replace(result, declaration=None))
    return {**said, "finished_at": result.finished_at.isoformat()}


def unpack_result(packed: dict[str, Any]) -> Result:
    at = datetime.fromisoformat(packed["finished_at"])
    return Result(**{**packed, "finished_at": at, "errors": tuple(packed["errors"])})


def pack_member(member: Member) -> list[str]:
    return [str(member.instance), member.digest, member.deployment]


def unpack_member(packed: Sequence[str], clock: Clock) -> Member:
    instance, digest, deployment = packed
    return member_of(conf.options(), clock, UUID(instance), digest, deployment)


_RUN = ("id", "task_name", "attempt", "reason", "timezone", "max_attempts")


def pack_run(run: Run) -> dict[str, Any]:
    instants = [run.scheduled_for.isoformat(), run.started_at.isoformat()]
    return {name: getattr(run, name) for name in _RUN} | {"at": instants, "meta": dict(run.meta)}


def unpack_run(packed: dict[str, Any], cancelled: threading.Event) -> Run:
    scheduled_for, started_at = map(datetime.fromisoformat, packed.pop("at"))
    return Run(
        **packed,
        scheduled_for=scheduled_for,
        started_at=started_at,
        stopping=threading.Event(),
        cancelled=cancelled,
    )


def close_quietly(*descriptors: int) -> None:
    """Close descriptors, also those that are closed already."""
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)


class Talk:
    """The conversation of a run's process, as long as its descriptor is ours.

    Args:
        conversation: is moved to another descriptor, so the caller must not use it any more.
    """

    def __init__(self, conversation: socket.socket) -> None:
        self._socket = socket.socket(fileno=out_of_the_way(conversation.detach()))
        self._owned = Owned(self._socket.fileno())
        forking.close_in_children(self._owned.number)
        self._lock = threading.Lock()

    @property
    def is_ours(self) -> bool:
        """Return whether the callback has not closed it."""
        return self._owned.is_ours

    def say(self, **said: Any) -> bool:
        """Send one message, and return whether that was possible."""
        with self._lock, suppress(OSError):
            if self.is_ours:
                send_line(self._socket, **said)
                return True
        return False

    def break_line(self) -> None:
        """End a message that a signal cut off, so that the next one is understood."""
        with suppress(OSError):
            if self.is_ours:
                self._socket.sendall(b"\n")

    def messages(self) -> Iterator[dict[str, Any]]:
        """Wait for the messages of the scheduler, until it is gone or the descriptor not ours."""
        lines = Lines()
        with suppress(OSError):
            while self.is_ours and (piece := self._socket.recv(MOST_AT_ONCE)):
                yield from lines.add(piece)
