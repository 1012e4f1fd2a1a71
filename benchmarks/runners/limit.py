"""The least: a fork that says when it was, and the wait for its end."""

from __future__ import annotations

import os
import struct
import time

from .running import Calling

WORKERS = 10


class Case(Calling):
    """No runs but processes."""

    def one(self) -> float | None:
        """Fork."""
        return _end(*_fork())

    def many(self) -> int:
        """Fork again and again, and wait for the oldest of ten."""
        running, right = list[tuple[int, int]](), 0
        for _ in range(self.size):
            if len(running) == WORKERS:
                right += _end(*running.pop(0)) is not None
            running.append(_fork())
        return right + sum(_end(*each) is not None for each in running)


def _fork() -> tuple[int, int]:
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.write(writes, struct.pack("d", time.monotonic()))
        os._exit(0)
    os.close(writes)
    return child, reads


def _end(child: int, reads: int) -> float | None:
    said = os.read(reads, 8)
    os.close(reads)
    _, status = os.waitpid(child, 0)
    called: float = struct.unpack("d", said)[0]
    return None if status else called
