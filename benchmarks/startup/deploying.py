"""What everybody is asked in this part."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator

from ..harness.declared import as_new, crons, names
from ..harness.parts import Sample

CHANGED = "59 23 31 12 *"


class Deploying(ABC):
    """A contender of this part: it declares tasks, each time as if its process had just begun."""

    changes_rows = True
    most_first = 1_000_000

    def prepare(self, size: int) -> None:
        """Take the number of tasks.

        Args:
            size: that number.
        """
        self._names, self._crons = names(size), crons(size)

    @abstractmethod
    def clear(self) -> None:
        """Let nothing be declared."""

    def fill(self) -> None:
        """Write the rows for it, where the first registration is left out; not measured."""
        raise NotImplementedError

    @abstractmethod
    def declare(self, names: list[str], crons: list[str]) -> int | None:
        """Do what a process does that begins, up to where it would look for due tasks.

        Args:
            names: of the tasks.
            crons: their schedules.

        Returns:
            the number of statements sent, where they are counted.
        """

    @abstractmethod
    def rows(self) -> dict[object, object]:
        """Give each task's row by its key, as something that is another once it was written."""

    def leave(self) -> None:  # noqa: B027 - not everybody began something
        """End what ``declare`` began; not measured."""

    def measure(self) -> Iterator[Sample]:
        """Declare the first time, again, and with one change."""
        self.clear()
        if len(self._names) <= self.most_first:
            first = self._declare("first registration", self._crons)
            yield Sample(*first[:2], len(self.rows()), len(self._names), first[2])
        else:
            self.fill()
        again = self._declare("restart, unchanged", self._crons)
        yield Sample(*again[:2], len(self.rows()), len(self._names), again[2])
        before = self.rows()
        middle = len(self._crons) // 2
        other = [*self._crons[:middle], CHANGED, *self._crons[middle + 1 :]]
        changed = self._declare("restart, one changed", other)
        written = sum(before.get(key) != row for key, row in self.rows().items())
        yield Sample(*changed[:2], statements=changed[2])
        if self.changes_rows:
            yield Sample("rows written for it", written)

    def close(self) -> None:  # noqa: B027 - not everybody holds something
        """Leave."""

    def _declare(self, figure: str, crons: list[str]) -> tuple[str, float, int | None]:
        with as_new():
            began = time.perf_counter()
            statements = self.declare(self._names, crons)
            took = (time.perf_counter() - began) * 1000
        self.leave()
        return figure, took, statements
