"""Tracebacks of bounded length.

Python's own formatting builds the whole text first: an exception with tens of megabytes of text,
or a chain of thousands, would stop every thread of the process.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from types import TracebackType

from ..exceptions import class_of, shortened, text_of

_EXCEPTIONS = 50
_LINKS = 10_000
_SHOWN_LINKS = 10
_FRAMES = 30
_NESTED = 5
_GROUPED = 10
_NOTES = 10
_LONGEST_FRAME = 1_000

_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"


def traceback_of(error: BaseException, length: int, start: TracebackType | None = None) -> str:
    """Return the traceback of an exception, with its chain, as Python writes it."""
    try:
        first = start or error.__traceback__
        return shortened("".join(_Writer().chain(error, first, 0)), length)
    except BaseException:
        return f"{class_of(error)} (its traceback cannot be read)"


class _Writer:
    """Write a limited number of exceptions."""

    def __init__(self) -> None:
        self._left = _EXCEPTIONS

    def chain(self, error: BaseException, start: TracebackType | None, depth: int) -> Iterator[str]:
        """Yield the parts of an exception and its chain, oldest first."""
        links = list(_links(error))
        between = len(links) - 2 * _SHOWN_LINKS
        for position, (link, joint) in reversed(list(enumerate(links))):
            if _SHOWN_LINKS <= position < _SHOWN_LINKS + between:
                if position == _SHOWN_LINKS:
                    yield f"\n… {between} more exceptions …\n\n"
                continue
            frames = start if link is error else link.__traceback__
            yield from self._one(link, frames, depth)
            yield joint

    def _one(self, error: BaseException, start: TracebackType | None, depth: int) -> Iterator[str]:
        self._left -= 1
        if self._left < 0:
            yield f"{class_of(error)} …\n"
            return
        if start is not None:
            yield "Traceback (most recent call last):\n"
            yield from _frames(start)
        yield _last_line(error)
        yield from _notes(error)
        if isinstance(error, BaseExceptionGroup):
            yield from self._group(error, depth + 1)

    def _group(self, group: BaseExceptionGroup[BaseException], depth: int) -> Iterator[str]:
        found = group.exceptions
        for number, error in enumerate(found[:_GROUPED] if depth <= _NESTED else (), start=1):
            yield f"  +---------------- {number} ----------------\n"
            for piece in self.chain(error, error.__traceback__, depth):
                yield "".join(f"  | {line}" for line in piece.splitlines(keepends=True))
        if len(found) > _GROUPED or depth > _NESTED:
            yield f"  … {len(found)} exceptions in all\n"


def _links(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """Yield the exceptions of a chain, newest first, each with the line that joins it."""
    seen, joint, each = set[int](), "", error
    while id(each) not in seen and len(seen) < _LINKS:
        seen.add(id(each))
        yield each, joint
        before, joint = each.__cause__, _CAUSE
        if before is None and not each.__suppress_context__:
            before, joint = each.__context__, _CONTEXT
        if before is None:
            return
        each = before


def _frames(start: TracebackType) -> Iterator[str]:
    number, following = 1, start.tb_next
    while following is not None:
        number, following = number + 1, following.tb_next
    if number <= 2 * _FRAMES:
        pieces = traceback.extract_tb(start).format()
    else:
        between = f"  … {number - 2 * _FRAMES} more frames …\n"
        first = traceback.extract_tb(start, _FRAMES).format()
        pieces = [*first, between, *traceback.extract_tb(start, -_FRAMES).format()]
    yield from (shortened(piece, _LONGEST_FRAME) for piece in pieces)


def _last_line(error: BaseException) -> str:
    kind, text = type(error), text_of(error)
    name = shortened(kind.__qualname__, _LONGEST_FRAME)
    if kind.__module__ not in ("builtins", "__main__"):
        name = f"{shortened(str(kind.__module__), _LONGEST_FRAME)}.{name}"
    return f"{name}: {text}\n" if text else f"{name}\n"


def _notes(error: BaseException) -> Iterator[str]:
    notes = getattr(error, "__notes__", ())
    if isinstance(notes, list | tuple):
        for note in notes[:_NOTES]:
            if isinstance(note, str):
                yield shortened(note, _LONGEST_FRAME) + "\n"
