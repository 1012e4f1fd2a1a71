"""What everybody is asked in this part: one process registers, and another one restarts."""

from __future__ import annotations

import os
import struct
import time
from abc import abstractmethod
from collections.abc import Iterator

from ..harness.declared import names
from ..harness.parts import Sample
from ..memory.idling import leave_database, resident
from ..tick.passing import idle_passes


class Restarting:
    """A contender of this part."""

    def prepare(self, size: int) -> None:
        """Register in a child process, which tells how long that took.

        Args:
            size: how many tasks.
        """
        self.names = names(size)
        leave_database()
        reads, writes = os.pipe()
        child = os.fork()
        if not child:
            began = time.perf_counter()
            self.register()
            os.write(writes, struct.pack("d", time.perf_counter() - began))
            os._exit(0)
        os.close(writes)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        self._took = struct.unpack("d", os.read(reads, 8))[0]

    @abstractmethod
    def register(self) -> None:
        """Write every task; the process ends afterwards."""

    @abstractmethod
    def restart(self) -> None:
        """Begin with nothing changed."""

    @abstractmethod
    def idle(self) -> int | None:
        """Do a pass that finds nothing; give the number of statements."""

    @abstractmethod
    def count(self) -> int:
        """Count the rows."""

    def measure(self) -> Iterator[Sample]:
        """Restart, and look."""
        yield Sample("registration", self._took, self.count(), len(self.names))
        began = time.perf_counter()
        self.restart()
        yield Sample("restart", time.perf_counter() - began)
        yield Sample("memory", resident())
        yield idle_passes(self.idle)

    def close(self) -> None:
        """Leave."""
