"""The output of a subcommand: a terminal, a pipe, or JSON for a program."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO

from django.core.management.base import OutputWrapper
from django.core.management.color import Style

from ...exceptions import safe
from .table import Cell, Paint, one_line_table, table

_PIPED = 80
_NARROWEST = 40
_BREAKS = "\n\t"
_CLEAR = "\x1b[H\x1b[2J"


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
    def width(self) -> int:
        """Return the number of columns: of the terminal, 80 for everything else."""
        if not self.is_interactive:
            return _PIPED
        return max(shutil.get_terminal_size((_PIPED, 24)).columns, _NARROWEST)

    def say(self, text: str = "", role: str = "") -> None:
        """Write one line, wrapped where it is too long for the terminal."""
        paint = self.paint(role) if role else None
        lines = table([[_escaped(Cell((text,), paint))]], self.width)
        self._write(self._out, "\n".join(lines))

    def lines(self, text: str) -> None:
        """Write lines without wrapping, to compare or search them."""
        self._write(self._out, safe(text, keep=_BREAKS))

    def warn(self, text: str) -> None:
        """Write lines to standard error without wrapping."""
        self._write(self._err, safe(text, keep=_BREAKS))

    def progress(self, text: str = "") -> None:
        """Show the progress of long work, on a terminal only; the next text replaces it."""
        if self._err.isatty():
            shown = safe(text)[: self.width - 1]
            back = "" if text else "\r"
            self._write(self._err, f"\r{shown.ljust(self._shown)}{back}", ending="")
            self._shown = len(shown)

    def clear(self) -> None:
        """Clear a terminal."""
        if self.is_interactive:
            self._write(self._out, _CLEAR, ending="")

    def table(self, rows: Sequence[Sequence[Cell]], header: Sequence[str] = ()) -> None:
        """Write a table, wrapped to the width of the terminal."""
        self._write(self._out, "\n".join(table(self._rows(rows, header), self.width)))

    def one_line_table(
        self, rows: Sequence[Sequence[Cell]], header: Sequence[str], *, wide: bool
    ) -> None:
        """Write a table with one line a row: cut on a terminal, whole in a pipe or if wide."""
        width = self.width if self.is_interactive and not wide else None
        self._write(self._out, "\n".join(one_line_table(self._rows(rows, header), width)))

    def _rows(self, rows: Sequence[Sequence[Cell]], header: Sequence[str]) -> list[list[Cell]]:
        heading = [Cell((name,), self.paint("MIGRATE_HEADING")) for name in header]
        body = [[_escaped(cell) for cell in row] for row in rows]
        return [heading, *body] if header else body

    def verbatim(self, text: str) -> None:
        """Write a text for another program without wrapping its lines."""
        self._write(self._out, text.rstrip("\n"))

    def data(self, value: Any) -> None:
        """Write JSON."""
        self._write(self._out, json.dumps(value, indent=2))
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


def _escaped(cell: Cell) -> Cell:
    return Cell(tuple(map(safe, cell.lines)), cell.paint)


def abandon(stream: OutputWrapper | TextIO) -> None:
    """Discard all further output of a stream after its reader has closed it."""
    with suppress(OSError, AttributeError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
