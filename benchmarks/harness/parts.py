"""What a part of the benchmarks is: its figures, its sizes, and who takes part."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

NAMES = (
    "cron",
    "startup",
    "tick",
    "throughput",
    "runners",
    "memory",
    "million",
    "pages",
    "growth",
    "pruning",
    "lateness",
    "writing",
    "edits",
)
"""The parts, in the order in which ``all`` measures them."""


@dataclass(frozen=True)
class Sample:
    """One figure, measured once.

    Args:
        figure: its name, one of the part's.
        value: in the unit of the figure.
        right: how many of the things done were found to be right.
        of: how many were to be done.
        statements: that the database was sent, where they were counted.
    """

    figure: str
    value: float
    right: int | None = None
    of: int | None = None
    statements: int | None = None


class Case(Protocol):
    """What one contender does in one part; each module of a contender has one by this name."""

    def prepare(self, size: int) -> None:
        """Get ready; not measured.

        Args:
            size: how much there is, in the unit of the part.
        """

    def measure(self) -> Iterable[Sample]:
        """Do the work once more, and say what it took."""

    def close(self) -> None:
        """Leave."""


@dataclass(frozen=True)
class Figure:
    """What is measured, and in what.

    Args:
        name: as samples have it.
        unit: such as ``ms``.
        more_is_better: as with runs per second.
        table: of the page, where those of a part are too many for one.
    """

    name: str
    unit: str
    more_is_better: bool = False
    table: str = ""


@dataclass(frozen=True)
class Part:
    """One part of the benchmarks.

    Args:
        name: of its command.
        title: of its table.
        figures: in the order of the columns.
        contenders: in the order of the rows.
        sizes: how much there is: number of tasks, mostly; ``0`` where it has none.
        size_unit: what sizes count.
        rounds: how often everything is measured.
        is_fresh: begin every round with new processes.
        is_by_processor: its times are the processor's own, whatever else the machine does.
        caps: the largest size that a contender is asked for, where more takes too long.
        share: minutes that it needs for a round or several; a budget is shared out by them.
        patience: seconds that a contender may take for one answer.
        remarks: sentences below the table.
    """

    name: str
    title: str
    figures: tuple[Figure, ...]
    contenders: tuple[str, ...]
    sizes: tuple[int, ...] = (0,)
    size_unit: str = "tasks"
    rounds: int = 5
    is_fresh: bool = False
    is_by_processor: bool = False
    caps: tuple[tuple[str, int], ...] = ()
    share: float = 1.0
    patience: float = 120.0
    remarks: tuple[str, ...] = ()

    def takes(self, contender: str, size: int) -> bool:
        """Tell whether a contender is asked for so much.

        Args:
            contender: its id.
            size: how much.
        """
        return size <= dict(self.caps).get(contender, size)


def part(name: str) -> Part:
    """Give a part by its name.

    Args:
        name: of a module or package of ``benchmarks`` that has a ``PART``.
    """
    found: Part = importlib.import_module(f"benchmarks.{name}").PART
    return found
