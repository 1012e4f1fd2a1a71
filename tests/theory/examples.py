"""The thirty traces of the design, with the verdict of each reading."""

from __future__ import annotations

from typing import NamedTuple

from .notation import CRONS, Record, trace


class Example(NamedTuple):
    """A trace and what is to be said of it.

    Args:
        number: in the design.
        text: in the notation.
        letter: what the letter objects to: axiom and position, ``open a`` for what stays open.
        repaired: the same for the repaired reading, where it differs.
    """

    number: int
    text: str
    letter: str
    repaired: str | None = None

    @property
    def records(self) -> list[Record]:
        return trace(self.text, CRONS if "'" in self.text else None)

    def expected(self, mode: str) -> set[str]:
        text = self.letter if mode == "letter" or self.repaired is None else self.repaired
        return {part.strip() for part in text.split(",")} - {"ok"}


_RAN = "init 10 [a] · 60 Due a · 61 RS a · 62 REs a"
_FAILED = "init 10 [a] · 60 Due a · 61 RS a · 62 REf a"
_CRASHED = "init 10 [a] · 60 Due a · 61 RS a · 70 Crash · init 80 [a]"
_DOWN = f"{_RAN} · stop 65 · 120 Due a · 180 Due a · init 200 [a] · 202 RS a · 203 REs a"
_PREEMPTED = f"{_FAILED} · 120 Due a · 121 RS a · 122 REs a · 362 RetryDue a"

EXAMPLES = [
    Example(
        1,
        f"{_RAN} · 120 Due a · 121 RS a · 122 REf a · 422 RetryDue a · 423 RS a · 424 REs a",
        "ok",
    ),
    Example(2, "init 10 [a] · 20 RS a · 21 REs a", "S1 2"),
    Example(3, f"{_RAN} · 63 RS a · 64 REs a", "S1 5, S2 5"),
    Example(4, "init 10 [a] · 60 Due a · 61 RS a · 120 Due a · 121 RS a", "S1 5"),
    Example(5, f"{_CRASHED} · 82 RS a · 83 REs a", "ok"),
    Example(6, f"{_CRASHED} · 300 Tick", "open a", "L1 6, open a"),
    Example(7, f"{_CRASHED} · 82 REs a", "S4 7, EA6 7, open a"),
    Example(8, "init 10 [a] · 60 Due a · 61 RS a · stop 65 · 90 REs a", "S3 5"),
    Example(9, "init 10 [a] · 60 Due a · 61 SS · 61 RS a · 62 REs a · 63 SE", "S1 4"),
    Example(10, "60 Due a · init 70 [a] · 72 RS a · 73 REs a", "ok"),
    Example(
        11,
        "60 Due a + Due b · init 70 [a,b] · 72 RS a · 73 RS b · 74 REs a · 75 REs b",
        "S1 4",
        "ok",
    ),
    Example(12, "60 Due a · 120 Tick · init 125 [a] · 127 RS a · 128 REs a", "S1 4"),
    Example(13, _DOWN, "ok"),
    Example(14, f"{_DOWN} · 204 RS a · 205 REs a", "S1 13, S2 13"),
    Example(
        15,
        "init 10 [a] · 60 Due a · 61 RS a · 120 Due a · 130 REs a · 131 RS a · 132 REs a",
        "ok",
    ),
    Example(16, f"{_FAILED} · 100 RS a · 101 REs a", "S1 5"),
    Example(17, f"{_PREEMPTED} · 363 RS a · 364 REs a", "S2 9", "S1 9, S2 9"),
    Example(18, f"{_PREEMPTED} · 900 Tick", "open a", "ok"),
    Example(19, "10 IS[a] · 11 SS · 12 IEs[a] · 13 SE · 60 Due a · 900 Tick", "open a", "ok"),
    Example(20, "init 10 [a] · 60 Due a + RS a · 61 REs a", "S1 2, open a", "S1 2"),
    Example(21, "init 10 [a] · 60 Due a · 60 RS a · 61 REs a", "ok"),
    Example(22, "init 10 [z] · 60 Due z · 61 RS z · 62 REf z · 63 RS z · 64 REs z", "ok"),
    Example(
        23,
        f"{_FAILED} · 362 Tick · 362 RS a · 363 REf a · 364 RS a · 365 REs a",
        "ok",
        "S1 8",
    ),
    Example(
        24,
        f"{_FAILED} · stop 63 · init 65 [b] · stop 67 · 362 RetryDue a · init 370 [a] · 372 RS a",
        "S1 14",
    ),
    Example(
        25,
        "init 10 [a] · 60 Due a · 61 RS a · 62 Crash · init 70 [b] · 80 Crash · 120 Tick"
        " · init 130 [a] · 132 Crash · init 140 [a] · 142 RS a · 143 REs a",
        "ok",
        "S1 14",
    ),
    Example(
        26,
        f"{_RAN} · stop 63 · init 65 [b] · stop 67 · init 69 [a] · 71 RS a · 72 REs a",
        "S2 13",
    ),
    Example(
        27,
        "init 10 [a] · 60 Due a' · 120 Due a · 121 RS a · 122 REs a · stop 130"
        " · init 140 [a'] · 142 RS a · 143 REs a",
        "ok",
        "S1 10, S2 10",
    ),
    Example(28, "init 10 [a] · 60 Due a · 61 REs a", "S4 3, open a"),
    Example(29, "init 10 [a] · 60 Due a + Due b · 61 RS b", "S1 3, open a"),
    Example(30, f"{_RAN} · 65 Crash · init 70 [a] · 75 RS a · 76 REs a", "S1 8, S2 8"),
]
