"""What the processes of a process runner say to one another.

Between the scheduler and its fork server: messages of one size, so that descriptors that
come with one are found with it. ``FORK`` brings two descriptors, the conversation of the run
and where its output goes; ``SIGNAL`` has a signal sent to the run's whole group; ``ASK``
asks whether the server serves, which says so by ``ANSWER``.

In the conversation of one run: one JSON object a line. The scheduler says what is to be
called, then what the run should know (``stopping``, ``cancelled``). The run says that it
``began`` and as which group, ``log`` lines and how it ``ended``; the server says how the
process left (``exit``), when all else has been said.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from ...store.guard import Member
from ...store.results import Result
from ..clock import Clock

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

    Args:
        conversation: of a run.
        said: JSON-native.

    Raises:
        OSError: nobody listens.
    """
    conversation.sendall(json.dumps(said).encode() + b"\n")


class Lines:
    """Put together what comes in pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, piece: bytes) -> Iterator[dict[str, Any]]:
        """Give the lines that a piece completes.

        Args:
            piece: as it was received.
        """
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            try:
                said = json.loads(line)
            except ValueError:
                continue  # Somebody was killed in the middle of a word.
            if isinstance(said, dict):
                yield said


def pack_result(result: Result) -> dict[str, Any]:
    """Give a result as JSON-native data.

    Args:
        result: of a run.
    """
    said = asdict(replace(result, declaration=None))
    return {**said, "finished_at": result.finished_at.isoformat()}


def unpack_result(packed: dict[str, Any]) -> Result:
    """Read a result again.

    Args:
        packed: as ``pack_result`` gave it.
    """
    at = datetime.fromisoformat(packed["finished_at"])
    return Result(**{**packed, "finished_at": at, "errors": tuple(packed["errors"])})


def pack_member(member: Member) -> dict[str, Any]:
    """Give who an instance is as JSON-native data.

    Args:
        member: whose run is called.
    """
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
    """Read who an instance is again.

    Args:
        packed: as ``pack_member`` gave it.
        clock: of this process.
    """
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
    """Close descriptors, those too that are closed already.

    Args:
        descriptors: of this process.
    """
    for descriptor in descriptors:
        try:
            os.close(descriptor)
        except OSError:
            continue
