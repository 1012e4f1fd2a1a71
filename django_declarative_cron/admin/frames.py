"""A stored traceback, with the project's own frames told from those of libraries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PLACE = re.compile(
    r'^\s*(?:[|+]\s*)*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<name>.+))?$'
)
_LIBRARIES = re.compile(
    r"[/\\](?:site-packages|dist-packages|lib[/\\]python\d[\d.]*)[/\\]"
    r"|[/\\]django_declarative_cron[/\\](?:runtime|store|core)[/\\]"
    r"|^<"
)
_MOST = 20


@dataclass(frozen=True, slots=True)
class Frame:
    """One place in code.

    Args:
        file: its path, as the traceback writes it.
        line: its number.
        name: of the function.
        code: the line, empty where the traceback has none.
    """

    file: str
    line: int
    name: str
    code: str


def project_frames(traceback: str) -> list[Frame]:
    """Return the frames of a traceback that are in no library, where it failed first."""
    frames = [frame for frame in _frames(traceback) if not _LIBRARIES.search(frame.file)]
    return frames[::-1][:_MOST]


def _frames(traceback: str) -> Iterator[Frame]:
    lines = traceback.splitlines()
    for index, text in enumerate(lines):
        place = _PLACE.match(text)
        if place is None:
            continue
        following = lines[index + 1].strip() if index + 1 < len(lines) else ""
        has_code = bool(following) and _PLACE.match(lines[index + 1]) is None
        yield Frame(
            file=place["file"],
            line=int(place["line"][:9]),
            name=place["name"] or "",
            code=following if has_code else "",
        )
