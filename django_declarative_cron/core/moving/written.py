"""What was moved, as Python for a settings module and as data."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from .moved import Moved, Moving

_WIDTH: Final = 96
_INDENT: Final = "    "


def python(moving: Moving) -> str:
    """Return the text of a settings module."""
    return "\n".join(_lines(moving)) + "\n"


def data(moving: Moving) -> dict[str, Any]:
    """Return it as JSON-native data."""
    return {
        "from": moving.rival,
        "source": moving.source,
        "differences": [each._asdict() for each in moving.general],
        "tasks": [
            {
                "was": task.was,
                "entry": None if task.entry is None else _native(task.entry),
                "differences": [each._asdict() for each in task.differences],
            }
            for task in moving.tasks
        ],
    }


def _native(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {key: _native(each) for key, each in value.items()}
    return value


def _lines(moving: Moving) -> Iterator[str]:
    yield from _comment(f"From {moving.rival}: {moving.source}", "")
    if moving.general and moving.tasks:
        yield from _comment("What is different of every task", "")
        for each in moving.general:
            yield from _comment(f"- {each.about}: {each.text}", "", hanging=True)
    entries = [task.entry for task in moving.tasks if task.entry is not None]
    if any(isinstance(value, timedelta) for entry in entries for value in entry.values()):
        yield "from datetime import timedelta"
    yield ""
    yield "SCHEDULED_TASKS = ["
    for task in moving.tasks:
        yield from _task(task)
    yield "]"


def _task(task: Moved) -> Iterator[str]:
    if task.entry is None:
        yield from _comment(f"{task.was}: no entry", _INDENT)
    for each in task.differences:
        yield from _comment(f"- {each.about}: {each.text}", _INDENT, hanging=True)
    if task.entry is not None:
        yield f"{_INDENT}{{"
        for key, value in task.entry.items():
            yield f"{_INDENT * 2}{literal(key)}: {literal(value)},"
        yield f"{_INDENT}}},"


def _comment(text: str, indent: str, *, hanging: bool = False) -> Iterator[str]:
    # Whatever stands in a foreign name, a comment ends where its line does.
    plain = f"{' '.join(text.split()).rstrip('.')}."
    plain = "".join(each if each.isprintable() else "?" for each in plain)
    yield from textwrap.wrap(
        plain,
        _WIDTH,
        initial_indent=f"{indent}# ",
        subsequent_indent=f"{indent}#   " if hanging else f"{indent}# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def literal(value: Any) -> str:
    """Write a value as Python."""
    match value:
        case timedelta():
            seconds = value.total_seconds()
            minutes, rest = divmod(seconds, 60)
            whole = f"minutes={minutes:.0f}" if not rest else f"seconds={seconds:.10g}"
            return f"timedelta({whole})"
        case str():
            return json.dumps(value, ensure_ascii=False) if value.isprintable() else repr(value)
        case list() | tuple():
            return f"[{', '.join(map(literal, value))}]"
        case Mapping():
            pairs = (f"{literal(key)}: {literal(each)}" for key, each in value.items())
            return f"{{{', '.join(pairs)}}}"
    return repr(value)
