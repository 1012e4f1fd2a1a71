"""Everybody in turns: one round is one measurement of each, and there are several rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

from .contenders import Contender
from .parts import Part, Sample
from .workers import WorkerError


class Measured(Protocol):
    """What a round asks of a contender's process."""

    contender: Contender
    size: int
    versions: dict[str, str]

    def prepare(self) -> None:
        """Let it get ready."""

    def measure(self) -> list[Sample]:
        """Let it do the work once more."""

    def close(self) -> None:
        """Let it go."""


_MUCH = 3
"""How many times as long as is usual is much longer."""

Begin = Callable[[Contender, int], Measured]


@dataclass
class Row:
    """All samples of one contender at one size.

    Args:
        contender: its id.
        size: of the part.
        versions: by distribution.
        samples: of all rounds.
        trouble: why there are no more of them.
        seconds: that it took for the last round.
    """

    contender: str
    size: int
    versions: dict[str, str] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    trouble: str = ""
    seconds: float = 0.0

    def is_open(self, longest: float) -> bool:
        """Tell whether it is asked for another round.

        Args:
            longest: seconds for a round that keep nobody from another.
        """
        return not self.trouble and self.seconds <= longest


@dataclass
class Turns:
    """The rounds of one part.

    Args:
        part: what is measured.
        contenders: who, in this order.
        sizes: how much.
        rounds: how often.
        seconds: for all sizes together: no round begins once a size's part of them is over, and
            who took more than an eighth of that for one round, and much longer than the others,
            is not asked for another.
        tell: is told what happens.
    """

    part: Part
    contenders: list[Contender]
    sizes: tuple[int, ...]
    rounds: int
    seconds: float
    tell: Callable[[str], None]

    def take(self, begin: Begin) -> list[Row]:
        """Measure everybody at every size.

        Args:
            begin: starts the process of a contender.
        """
        end = time.monotonic() + self.seconds
        found: list[Row] = []
        for position, size in enumerate(self.sizes):
            # What a size has left over is the others'.
            share = (end - time.monotonic()) / (len(self.sizes) - position)
            found += self._at(size, begin, share)
        return found

    def _at(self, size: int, begin: Begin, share: float) -> Iterator[Row]:
        deadline = time.monotonic() + share
        taking = [each for each in self.contenders if self.part.takes(each.id, size)]
        rows = {each.id: Row(each.id, size) for each in taking}
        open_: dict[str, Measured] = {}
        try:
            for number in range(self.rounds):
                if number and time.monotonic() > deadline:
                    self.tell(f"{self.part.name} {size:,}: {number} rounds, the time is up")
                    break
                longest = _longest(rows.values(), share)
                turned = [e for e in _turned(taking, number) if rows[e.id].is_open(longest)]
                self._round(turned, rows, open_, begin, size)
                if self.part.is_fresh:
                    _close(open_)
        finally:
            _close(open_)
        return iter(rows.values())

    def _round(
        self,
        taking: Iterable[Contender],
        rows: dict[str, Row],
        open_: dict[str, Measured],
        begin: Begin,
        size: int,
    ) -> None:
        for contender in taking:
            row, began = rows[contender.id], time.monotonic()
            try:
                if contender.id not in open_:
                    open_[contender.id] = begin(contender, size)
                    open_[contender.id].prepare()
                    row.versions = open_[contender.id].versions
                row.samples += open_[contender.id].measure()
            except (WorkerError, RuntimeError) as error:
                row.trouble = str(error)
            row.seconds = time.monotonic() - began
            self.tell(
                f"{self.part.name} {size:,} {contender.id}: {row.seconds:.1f} s {row.trouble}"
            )


def _longest(rows: Iterable[Row], share: float) -> float:
    """Give how long a round may take: where all wait for a minute, nobody takes too long."""
    took = [row.seconds for row in rows if not row.trouble]
    usual = median(took) if took else 0.0
    return max(share / 8, _MUCH * usual)


def _turned(taking: list[Contender], number: int) -> list[Contender]:
    """Give them in another order each round, so that nobody always follows the same one."""
    if not taking:
        return []
    first = number % len(taking)
    return taking[first:] + taking[:first]


def _close(open_: dict[str, Measured]) -> None:
    while open_:
        open_.popitem()[1].close()
