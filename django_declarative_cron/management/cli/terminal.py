"""The output of a subcommand: a terminal, a pipe, or JSON for a program."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, TextIO
from uuid import UUID

from django.core.management.base import OutputWrapper
from django.core.management.color import Style

from ...exceptions import safe
from ...formatting import iso8601
from .table import Cell, Form, Paint, table, wrap

_USUAL = (80, 24)
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
    def width(self) -> int | None:
        """Return the number of columns of a terminal, ``None`` where lines may have any length."""
        return _columns() if self.is_interactive else None

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
        return "\n".join(part for line in shown.split("\n") for part in wrap(line, _columns()))

    def progress(self, text: str = "") -> None:
        """Show the progress of long work, on a terminal only; the next text replaces it."""
        if self._err.isatty():
            shown = safe(text)[: _columns() - 1]
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


def _columns() -> int:
    return max(shutil.get_terminal_size(_USUAL).columns, _NARROWEST)


def abandon(stream: OutputWrapper | TextIO) -> None:
    """Discard all further output of a stream after its reader has closed it."""
    with suppress(OSError, AttributeError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
