"""Tables for terminals: columns are wrapped to a width, or cut to one line a row."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

GAP = "  "
ELLIPSIS = "…"

Paint = Callable[[str], str]
Form = Literal["wrapped", "cut", "whole"]


@dataclass(frozen=True, slots=True)
class Cell:
    """The lines of one row and column, and their colour.

    Args:
        lines: texts below each other.
        paint: colours them.
        below: a text below its row, cut to the width; where rows are one line, its last line.
    """

    lines: tuple[str, ...] = ()
    paint: Paint | None = None
    below: str = ""


def cells(*texts: str) -> list[Cell]:
    """Return a row of plain texts."""
    return [Cell((text,)) for text in texts]


def table(rows: Sequence[Sequence[Cell]], width: int | None, form: Form = "wrapped") -> list[str]:
    """Return the lines of a table; without a width they are whole, one for each row.

    Args:
        rows: the cells of each row.
        width: number of columns of the terminal.
        form: whether a row that is too wide is wrapped, cut to one line, or left whole.
    """
    if not rows:
        return []
    if form == "wrapped" and width is not None:
        widths = _widths(rows, width)
        return [line for row in rows for line in _wrapped(row, widths, width)]
    joined = [[_joined(cell) for cell in row] for row in rows]
    widths = _widths(joined, width if form == "cut" else None)
    return [_line([(cell, cell.lines[0]) for cell in row], widths) for row in joined]


def _widths(rows: Sequence[Sequence[Cell]], width: int | None) -> list[int]:
    """Return the width of each column; the widest shrink first where there is no room."""
    widths = [max(map(_needed, column)) for column in zip(*rows, strict=True)]
    if width is None:
        return widths
    room = max(width - len(GAP) * (len(widths) - 1), len(widths) * 2)
    while sum(widths) > room:
        widths[widths.index(max(widths))] -= 1
    return widths


def _needed(cell: Cell) -> int:
    return max(map(columns, cell.lines), default=0)


def _joined(cell: Cell) -> Cell:
    lines = (*cell.lines, cell.below) if cell.below else cell.lines
    return Cell((", ".join(lines),), cell.paint)


def _wrapped(row: Sequence[Cell], widths: Sequence[int], width: int) -> Iterator[str]:
    lines = [
        [part for line in cell.lines for part in wrap(line, width)]
        for cell, width in zip(row, widths, strict=True)
    ]
    for parts in zip_longest(*lines, fillvalue=""):
        yield _line(list(zip(row, parts, strict=True)), widths)
    for cell in row:
        if cell.below:
            yield cut(f"{GAP}{cell.below}", width)


def _line(parts: Sequence[tuple[Cell, str]], widths: Sequence[int]) -> str:
    padded = []
    for (cell, text), width in zip(parts, widths, strict=True):
        shown = cut(text, width)
        painted = cell.paint(shown) if cell.paint is not None and shown else shown
        padded.append(painted + " " * (width - columns(shown)))
    return GAP.join(padded).rstrip()


def cut(text: str, width: int) -> str:
    """Return a text of at most a number of columns, with an ellipsis where it was longer."""
    if columns(text) <= width:
        return text
    return _split(text, width - 1)[0].rstrip() + ELLIPSIS


def wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text, broken between words where possible."""
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
    """Return the number of columns that a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
