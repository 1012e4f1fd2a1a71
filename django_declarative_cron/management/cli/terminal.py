"""The output of a subcommand: a terminal, a pipe, or JSON for a program; and its tables.

Columns of a table are wrapped to the width of a terminal, or cut to one line a row.
"""

from __future__ import annotations

import json
import os
import shutil
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any, Literal, TextIO
from uuid import UUID

from django.core.management.base import OutputWrapper
from django.core.management.color import Style

from ...exceptions import safe
from ...formatting import iso8601

GAP = "  "
ELLIPSIS = "…"
_USUAL = (80, 24)
_NARROWEST = 40
_BREAKS = "\n\t"
_CLEAR = "\x1b[H\x1b[2J"

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


class Terminal:
    """Writes texts, tables and JSON to a command's output, coloured only on a terminal.

    Args:
        out: the standard output of the command.
        err: its standard error.
        style: Django's colours.
        force: colour a pipe too.
    """

    def __init__(
        self, out: OutputWrapper, err: OutputWrapper, style: Style, *, force: bool = False
    ) -> None:
        self._out = out
        self._err = err
        self._style = style
        self._is_coloured = force or out.isatty()
        self._shown = 0
        self.has_data = False

    @property
    def is_interactive(self) -> bool:
        return self._out.isatty()

    @property
    def width(self) -> int | None:
        """Return the number of columns of a terminal, ``None`` where lines may have any length."""
        return _screen_width() if self.is_interactive else None

    def say(self, text: str = "", role: str = "") -> None:
        """Write one line, wrapped where it is too long for the terminal."""
        self.table([[Cell((text,), self.paint(role))]])

    def remark(self, text: str = "", role: str = "") -> None:
        """Write a line beside records, so that a pipe has records only."""
        if self.is_interactive:
            self.say(text, role)
        elif text:
            self.warn(text)

    def lines(self, text: str) -> None:
        """Write lines without wrapping, to compare or search them."""
        self._write(self._out, safe(text, keep=_BREAKS))

    def warn(self, text: str) -> None:
        """Write lines to standard error without wrapping."""
        self._write(self._err, safe(text, keep=_BREAKS))

    def worded(self, error: str) -> str:
        """Return an error, of which a terminal gets lines that fit."""
        shown = safe(error, keep="\n")
        if not self._err.isatty():
            return shown
        return "\n".join(part for line in shown.split("\n") for part in wrap(line, _screen_width()))

    def progress(self, text: str = "") -> None:
        """Show the progress of long work, on a terminal only; the next text replaces it."""
        if self._err.isatty():
            shown = safe(text)[: _screen_width() - 1]
            back = "" if text else "\r"
            self._write(self._err, f"\r{shown.ljust(self._shown)}{back}", ending="")
            self._shown = len(shown)

    def clear(self) -> None:
        """Clear a terminal."""
        if self.is_interactive:
            self._write(self._out, _CLEAR, ending="")

    def table(
        self, rows: Sequence[Sequence[Cell]], header: Sequence[str] = (), form: Form = "wrapped"
    ) -> None:
        """Write a table; in a pipe its lines are whole, whatever the form."""
        heading = [Cell((name,), self.paint("MIGRATE_HEADING")) for name in header]
        body = [[_safe(cell) for cell in row] for row in rows]
        lines = table([heading, *body] if header else body, self.width, form)
        self._write(self._out, "\n".join(lines))

    def verbatim(self, text: str) -> None:
        """Write a text for another program without wrapping its lines."""
        self._write(self._out, text.rstrip("\n"))

    def data(self, value: Any) -> None:
        """Write JSON, with instants in UTC and durations in seconds."""
        self._write(self._out, json.dumps(value, indent=2, default=_native))
        self.has_data = True

    def paint(self, role: str | None) -> Paint | None:
        """Return the colouring function of a role of Django's styles."""
        return getattr(self._style, role) if role and self._is_coloured else None

    def _write(self, stream: OutputWrapper, text: str, ending: str = "\n") -> None:
        encoding = getattr(stream, "encoding", None)
        if encoding:
            # An encoding that lacks a character shows a question mark instead of a traceback.
            text = text.encode(encoding, "replace").decode(encoding)
        try:
            stream.write(text, ending=ending)
            stream.flush()
        except BrokenPipeError:
            abandon(stream)


def _safe(cell: Cell) -> Cell:
    return Cell(tuple(map(safe, cell.lines)), cell.paint, safe(cell.below))


def _native(value: Any) -> Any:
    match value:
        case datetime():
            return iso8601(value)
        case timedelta():
            return value.total_seconds()
        case UUID():
            return str(value)
    raise TypeError(f"{type(value).__name__} is not for JSON")


def _screen_width() -> int:
    return max(shutil.get_terminal_size(_USUAL).columns, _NARROWEST)


def abandon(stream: OutputWrapper | TextIO) -> None:
    """Discard all further output of a stream after its reader has closed it."""
    with suppress(OSError, AttributeError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


# --- tables ---------------------------------------------------------------------


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
