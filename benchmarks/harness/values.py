"""One figure out of all results that were kept, and how two of them compare."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from . import results
from .parts import NAMES
from .results import Summary, summary
from .rounds import Row

Kept = dict[str, list[Row]]


def kept(folder: Path = results.FOLDER) -> Kept:
    """Give the rows of every part that was measured.

    Args:
        folder: of the results.
    """
    found = {name: results.load(name, folder) for name in NAMES}
    return {name: each[0] for name, each in found.items() if each}


@dataclass(frozen=True)
class Value:
    """Where a number is found.

    Args:
        part: its name.
        figure: of the part.
        size: of the part; the largest one measured if there is none.
        contender: whose.
        of: what of the summary: its ``median``, ``high`` or ``statements``.
    """

    part: str
    figure: str
    size: int | None = None
    contender: str = "product"
    of: str = "median"

    def summary(self, found: Kept) -> Summary | None:
        """Give the figure with its spread, ``None`` where it was not measured.

        Args:
            found: all results.
        """
        rows = [row for row in found.get(self.part, ()) if row.contender == self.contender]
        if self.size is not None:
            rows = [row for row in rows if row.size == self.size]
        shown = [got for row in rows if (got := summary(row.samples, self.figure))]
        return shown[-1] if shown else None

    def number(self, found: Kept) -> float | None:
        """Give the number, ``None`` where it was not measured.

        Args:
            found: all results.
        """
        got = self.summary(found)
        return None if got is None else getattr(got, self.of)
