"""The end of what a run logs, kept with it.

Records are taken as they are made, so that neither levels nor handlers of the project
change: what its configuration does not let through is not kept either.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from typing import Any

from ..core.declarations.values import in_short
from ..core.tracebacks import traceback_of
from ..exceptions import shortened

LENGTH = 16 * 1024
"""Characters of log lines that are kept of a run."""

LINE_LENGTH = 4 * 1024

_FORMAT = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")


class Tail:
    """The last lines of a text that goes on and on.

    Args:
        length: of what is kept, in characters.
    """

    def __init__(self, length: int = LENGTH) -> None:
        self._length = length
        self._lines: deque[str] = deque()
        self._kept = 0
        self._lock = threading.Lock()
        self._is_cut = False

    def add(self, line: str) -> None:
        """Take a piece of text in; the oldest pieces go."""
        with self._lock:
            self._lines.append(line[-self._length :])
            self._kept += len(self._lines[-1])
            while self._kept > self._length:
                self._kept -= len(self._lines.popleft())
                self._is_cut = True

    def __str__(self) -> str:
        with self._lock:
            return ("…\n" if self._is_cut else "") + "".join(self._lines)


class _Taking:
    """What takes the records of one run."""

    def __init__(self, take: Callable[[str], object]) -> None:
        self.take = take
        self.newest: logging.LogRecord | None = None


_taking: ContextVar[_Taking | None] = ContextVar("declarative_cron_log", default=None)
_lock = threading.Lock()


@contextmanager
def kept(take: Callable[[str], object]) -> Iterator[None]:
    """Hand every record that is logged meanwhile on, at INFO and above, as a line."""
    _be_asked()
    token = _taking.set(_Taking(take))
    try:
        yield
    finally:
        _taking.reset(token)


def _be_asked() -> None:
    """See every record as it is made; whoever replaced us since is asked by us from now on."""
    with _lock:
        inner = logging.getLogRecordFactory()
        if getattr(inner, "_takes_tail", False):
            return

        def make(*args: Any, **kwargs: Any) -> logging.LogRecord:
            record = inner(*args, **kwargs)
            taking = _taking.get()
            if taking is not None and record.levelno >= logging.INFO:
                _take(taking, record)
            return record

        make._takes_tail = True  # type: ignore[attr-defined]
        logging.setLogRecordFactory(make)


if hasattr(os, "register_at_fork"):
    # A lock of the lines may be held by a thread that the child does not have.
    os.register_at_fork(after_in_child=lambda: _taking.set(None))


def _take(taking: _Taking, record: logging.LogRecord) -> None:
    # Two factories of ours may stand behind one another, with one of the project between.
    if record is taking.newest:
        return
    taking.newest = record
    try:
        line = _FORMAT.format(_bounded(record))
    except Exception:
        # Arguments that do not fit are the business of ``logging``, which tells of them.
        line = f"{record.levelname} {record.name}: {in_short(record.msg)}"
    taking.take(line[:LINE_LENGTH] + "\n")


def _bounded(record: logging.LogRecord) -> logging.LogRecord:
    """Return a copy whose text is cut before it is put together."""
    short = copy(record)
    short.msg, short.args = shortened(record.getMessage(), LINE_LENGTH), None
    if record.exc_info and record.exc_info[1] is not None:
        short.exc_text = traceback_of(record.exc_info[1], LINE_LENGTH)
    return short
