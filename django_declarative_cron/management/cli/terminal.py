"""Where a subcommand answers: people at a terminal, a pipe, or a program."""

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
from .table import Cell, Paint, table

_PIPED = 80
_NARROWEST = 40
_BREAKS = "\n\t"


class Terminal:
    """Write texts, tables and JSON, coloured only where someone looks.

    Args:
        out: the standard output of the command.
        err: its standard error.
        style: Django's colours, plain where none are wanted.
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
    def width(self) -> int:
        """Return the number of columns: the terminal's own, 80 for everything else."""
        if not self._out.isatty():
            return _PIPED
        return max(shutil.get_terminal_size((_PIPED, 24)).columns, _NARROWEST)

    def say(self, text: str = "", role: str = "") -> None:
        """Write one line at once, wrapped where it is too long for the terminal."""
        paint = self.paint(role) if role else None
        lines = table([[_escaped(Cell((text,), paint))]], self.width)
        self._write(self._out, "\n".join(lines))

    def lines(self, text: str) -> None:
        """Write lines as they are, for whoever compares or greps them."""
        self._write(self._out, safe(text, keep=_BREAKS))

    def warn(self, text: str) -> None:
        """Write lines to standard error as they are."""
        self._write(self._err, safe(text, keep=_BREAKS))

    def progress(self, text: str = "") -> None:
        """Show how far long work is, on a terminal only; the next text takes its place."""
        if self._err.isatty():
            shown = safe(text)[: self.width - 1]
            back = "" if text else "\r"
            self._write(self._err, f"\r{shown.ljust(self._shown)}{back}", ending="")
            self._shown = len(shown)

    def table(self, rows: Sequence[Sequence[Cell]], header: Sequence[str] = ()) -> None:
        """Write a table."""
        heading = [Cell((name,), self.paint("MIGRATE_HEADING")) for name in header]
        body = [[_escaped(cell) for cell in row] for row in rows]
        self._write(self._out, "\n".join(table([heading, *body] if header else body, self.width)))

    def as_it_is(self, text: str) -> None:
        """Write a text for another program, of which no line may be broken."""
        self._write(self._out, text.rstrip("\n"))

    def data(self, value: Any) -> None:
        """Write JSON."""
        self._write(self._out, json.dumps(value, indent=2))
        self.has_data = True

    def paint(self, role: str) -> Paint | None:
        """Return what colours a text."""
        return getattr(self._style, role) if self._is_coloured else None

    def _write(self, stream: OutputWrapper, text: str, ending: str = "\n") -> None:
        encoding = getattr(stream, "encoding", None)
        if encoding:
            # A terminal that lacks a sign shows a question mark instead of a traceback.
            text = text.encode(encoding, "replace").decode(encoding)
        try:
            stream.write(text, ending=ending)
            stream.flush()
        except BrokenPipeError:
            abandon(stream)


def _escaped(cell: Cell) -> Cell:
    return Cell(tuple(map(safe, cell.lines)), cell.paint)


def abandon(stream: OutputWrapper | TextIO) -> None:
    """Discard all further output of a stream that nobody reads any more."""
    with suppress(OSError, AttributeError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
