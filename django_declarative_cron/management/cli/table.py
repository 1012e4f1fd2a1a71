"""Tables of a given width; what does not fit goes on in the next line, nothing is cut off."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

GAP = "  "

Paint = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in one row and column.

    Args:
        lines: from top to bottom.
        paint: colours a text, or ``None``.
    """

    lines: tuple[str, ...] = ()
    paint: Paint | None = None


def table(rows: Sequence[Sequence[Cell]], width: int) -> list[str]:
    """Lay out rows in columns.

    Returns:
        the lines.
    """
    if not rows:
        return []
    widths = _widths(rows, width)
    return [line for row in rows for line in _row(row, widths)]


def _widths(rows: Sequence[Sequence[Cell]], width: int) -> list[int]:
    """Return each column what it needs; where that is too much, the widest give way first."""
    widths = [max(map(_needed, column)) for column in zip(*rows, strict=True)]
    room = max(width - len(GAP) * (len(widths) - 1), len(widths) * 2)
    while sum(widths) > room:
        widths[widths.index(max(widths))] -= 1
    return widths


def _needed(cell: Cell) -> int:
    return max(map(columns, cell.lines), default=0)


def _row(row: Sequence[Cell], widths: Sequence[int]) -> Iterator[str]:
    wrapped = [
        [part for line in cell.lines for part in wrap(line, width)]
        for cell, width in zip(row, widths, strict=True)
    ]
    for parts in zip_longest(*wrapped, fillvalue=""):
        padded = (
            _painted(cell, part) + " " * (width - columns(part))
            for cell, part, width in zip(row, parts, widths, strict=True)
        )
        yield GAP.join(padded).rstrip()


def _painted(cell: Cell, part: str) -> str:
    return cell.paint(part) if cell.paint is not None and part else part


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines, between words where that goes."""
    lines, line = [], ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        while columns(joined) > width:
            if line:
                head, joined = line, word
            else:
                head, joined = _split(joined, width)
            lines.append(head)
            line = ""
        line = joined
    return [*lines, line]


def _split(word: str, width: int) -> tuple[str, str]:
    used = 0
    for position, character in enumerate(word):
        used += columns(character)
        if used > width:
            return word[:position], word[position:]
    return word, ""


def columns(text: str) -> int:
    """Count the columns that a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
