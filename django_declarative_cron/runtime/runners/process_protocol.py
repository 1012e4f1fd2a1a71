"""How much memory and time of the processor a process may take."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from ...store.guard import Member
from ...store.results import Result
from .. import forking
from ..clock import Clock
from ..descriptors import identity, out_of_the_way

OPTIONS = ("memory_limit", "cpu_limit")
"""Keys of ``options`` that only a process can keep to: bytes, and seconds."""


def of(options: Mapping[str, Any]) -> dict[str, int]:
    """Return the limits that a task declares."""
    return {key: int(options[key]) for key in OPTIONS if options.get(key)}


def impose(limits: Mapping[str, int]) -> None:
    """Limit this process."""
    if not limits or sys.platform == "win32":
        return
    import resource

    memory, seconds = limits.get("memory_limit"), limits.get("cpu_limit")
    if memory is not None:
        # What is mapped and not written to is not counted, other than by RLIMIT_AS.
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    if seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def words_of_signal(number: int, limits: Mapping[str, int]) -> str:
    """Name the signal that ended a process, and the limit behind it where there was one."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if name == "SIGXCPU" and "cpu_limit" in limits:
        return f"{name}: it used the {limits['cpu_limit']} s of the processor that it may"
    return name


MESSAGE = struct.Struct("!cQB")
FORK = b"F"
SIGNAL = b"S"
ASK = b"A"
ANSWER = b"."

MOST_AT_ONCE = 64 * 1024

UNHEARD = 97
"""Exit code of a process whose callback closed the conversation of its run."""


def send_line(conversation: socket.socket, **said: Any) -> None:
    """Say one thing.

    Raises:
        OSError: nobody listens.
    """
    conversation.sendall(json.dumps(said).encode() + b"\n")


class Lines:
    """Put together what comes in pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, piece: bytes) -> Iterator[dict[str, Any]]:
        """Return the lines that a piece completes."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            try:
                said = json.loads(line)
            except ValueError:
                continue  # Somebody was killed in the middle of a word.
            if isinstance(said, dict):
                yield said


def pack_result(result: Result) -> dict[str, Any]:
    """Return a result as JSON-native data."""
    said = asdict(replace(result, declaration=None))
    return {**said, "finished_at": result.finished_at.isoformat()}


def unpack_result(packed: dict[str, Any]) -> Result:
    """Read a result again."""
    at = datetime.fromisoformat(packed["finished_at"])
    return Result(**{**packed, "finished_at": at, "errors": tuple(packed["errors"])})


def pack_member(member: Member) -> dict[str, Any]:
    """Return who an instance is as JSON-native data."""
    dead_after = member.dead_after
    return {
        "using": member.using,
        "deployment": member.deployment,
        "instance": str(member.instance),
        "digest": member.digest,
        "lease": member.lease.total_seconds(),
        "renew": member.renew.total_seconds(),
        "dead_after": None if dead_after is None else dead_after.total_seconds(),
    }


def unpack_member(packed: dict[str, Any], clock: Clock) -> Member:
    """Read who an instance is again."""
    dead_after = packed["dead_after"]
    return Member(
        using=packed["using"],
        deployment=packed["deployment"],
        instance=UUID(packed["instance"]),
        digest=packed["digest"],
        lease=timedelta(seconds=packed["lease"]),
        renew=timedelta(seconds=packed["renew"]),
        database_time=clock.database_time(),
        dead_after=None if dead_after is None else timedelta(seconds=dead_after),
    )


def close_quietly(*descriptors: int) -> None:
    """Close descriptors, those too that are closed already."""
    for descriptor in descriptors:
        try:
            os.close(descriptor)
        except OSError:
            continue


class Talk:
    """Say and hear, as long as the descriptor is ours.

    Args:
        conversation: is moved, and of no use to the caller any more.
    """

    def __init__(self, conversation: socket.socket) -> None:
        self._socket = socket.socket(fileno=out_of_the_way(conversation.detach()))
        self._identity = identity(self._socket.fileno())
        forking.close_in_children(self._socket.fileno())
        self._lock = threading.Lock()

    @property
    def is_ours(self) -> bool:
        """Return whether nobody has closed it."""
        return identity(self._socket.fileno()) == self._identity

    def say(self, **said: Any) -> bool:
        """Say one thing, and tell whether that was possible."""
        with self._lock:
            try:
                if self.is_ours:
                    send_line(self._socket, **said)
                    return True
            except OSError:
                pass
        return False

    def break_line(self) -> None:
        """Let what comes next be understood, although a signal cut off what was said before."""
        if self.is_ours:
            self._socket.sendall(b"\n")

    def hear(self, seconds: float | None = None) -> bytes | None:
        """Wait for what the scheduler says.

        Returns:
            what came, nothing where the scheduler is gone; ``None`` where nothing came.
        """
        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLIN)
        ready = poll.poll(None if seconds is None else seconds * 1000)
        if not ready or not self.is_ours:
            return None
        try:
            return self._socket.recv(MOST_AT_ONCE)
        except OSError:
            return b""
