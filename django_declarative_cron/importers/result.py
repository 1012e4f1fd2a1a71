"""Imported tasks with every difference in meaning, and their text for a settings module."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, Literal, NamedTuple

About = Literal[
    "zone",
    "weekday",
    "days",
    "schedule",
    "catch-up",
    "overlap",
    "retry",
    "arguments",
    "callback",
    "queue",
    "enabled",
    "ends",
    "environment",
    "output",
    "name",
    "refused",
]

NO_RETRY: Final[Mapping[str, Any]] = {"max_attempts": 1}

_LONGEST_NAME: Final = 100
_WIDTH: Final = 96
_INDENT: Final = "    "


class UntranslatableError(ValueError):
    """Raised where no entry has the same meaning; the text is the reason."""


class Difference(NamedTuple):
    """A change in meaning: its subject, and a sentence without a full stop."""

    about: About
    text: str


@dataclass(frozen=True, slots=True)
class ImportedTask:
    """One task: its old name, its entry (``None`` if nothing means the same), the differences."""

    was: str
    entry: Mapping[str, Any] | None
    differences: tuple[Difference, ...] = ()

    def differing(self, *differences: Difference) -> ImportedTask:
        return replace(self, differences=(*self.differences, *differences))

    def refused(self, reason: str) -> ImportedTask:
        return replace(self.differing(Difference("refused", reason)), entry=None)


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The tasks of one scheduler, and the differences that all of them share."""

    scheduler: str
    source: str
    tasks: tuple[ImportedTask, ...]
    general: tuple[Difference, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-native data."""
        return {
            "from": self.scheduler,
            "source": self.source,
            "differences": [each._asdict() for each in self.general],
            "tasks": [
                {
                    "was": task.was,
                    "entry": None if task.entry is None else _native(task.entry),
                    "differences": [each._asdict() for each in task.differences],
                }
                for task in self.tasks
            ],
        }

    def as_python(self) -> str:
        """Return the text of a settings module."""
        return "\n".join(_lines(self)) + "\n"


def named(tasks: Iterable[ImportedTask]) -> tuple[ImportedTask, ...]:
    """Give every entry a unique name that a declaration accepts."""
    taken: set[str] = set()
    found = []
    for task in tasks:
        if task.entry is None:
            found.append(task)
            continue
        name = _unique(_slug(task.was), taken)
        taken.add(name)
        renamed = replace(task, entry={"name": name, **task.entry})
        if name != task.was:
            renamed = renamed.differing(Difference("name", f"was called {task.was!r}"))
        found.append(renamed)
    return tuple(found)


def _slug(text: str) -> str:
    slug = re.sub(r"[^a-z0-9.-]+", "-", text.lower())[:_LONGEST_NAME].strip("-.")
    return slug or "task"


def _unique(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


def _native(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {key: _native(each) for key, each in value.items()}
    return value


def _lines(result: ImportResult) -> Iterator[str]:
    yield from _comment(f"From {result.scheduler}: {result.source}", "")
    if result.general and result.tasks:
        yield from _comment("What is different of every task", "")
        for each in result.general:
            yield from _comment(f"- {each.about}: {each.text}", "", hanging=True)
    entries = [task.entry for task in result.tasks if task.entry is not None]
    if any(isinstance(value, timedelta) for entry in entries for value in entry.values()):
        yield "from datetime import timedelta"
    yield ""
    yield "SCHEDULED_TASKS = ["
    for task in result.tasks:
        yield from _task(task)
    yield "]"


def _task(task: ImportedTask) -> Iterator[str]:
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
    # A foreign name may hold line breaks, which would end the comment.
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
    """Return a value as Python source."""
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
