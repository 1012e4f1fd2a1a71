"""Imported tasks with every difference in meaning, and their text for a settings module."""

from __future__ import annotations

import itertools
import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal, NamedTuple

from django.core.management.base import CommandError

from ..exceptions import class_of, words_of

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

NO_RETRY: Final[Mapping[str, Any]] = {"retry": {"max_attempts": 1}}
"""The options that keep the one attempt of schedulers which retry nothing."""

_LONGEST_NAME: Final = 100
_WIDTH: Final = 96
_INDENT: Final = "    "


class UntranslatableError(ValueError):
    """Raised where no entry has the same meaning; the text is the reason."""


class Difference(NamedTuple):
    """A change in meaning: its subject, and a sentence without a full stop."""

    about: About
    text: str


OVERLAPS: Final = Difference(
    "overlap", '"allow" keeps that runs may overlap; leave it out to skip a time during a run'
)
AS_CRON_DOES: Final = (
    Difference(
        "catch-up",
        '"catch_up_window" of 0 keeps that what was missed is left out; without it one run '
        "makes up for the latest",
    ),
    OVERLAPS,
    Difference(
        "retry", "the policy of one attempt keeps that cron retries nothing; leave it out for three"
    ),
)
"""Differences of all tasks that cron itself ran."""


@dataclass(slots=True)
class ImportedTask:
    """One task: its old name, its entry (empty if nothing means the same), the differences."""

    was: str
    entry: dict[str, Any] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    def differ(self, about: About, text: str) -> None:
        self.differences.append(Difference(about, text))

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Leave the task without an entry, and with the reason, where the block raises."""
        try:
            yield
        except (UntranslatableError, CommandError) as error:
            self._refuse(str(error))
        except Exception as error:
            # Foreign code and data may raise anything; the other tasks are read.
            self._refuse(f"it cannot be read: {class_of(error)}: {words_of(error)}")

    def _refuse(self, reason: str) -> None:
        self.entry, self.differences = {}, [Difference("refused", reason)]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The tasks of one scheduler, and the differences that all of them share."""

    scheduler: str
    source: str
    tasks: Sequence[ImportedTask]
    general: Sequence[Difference] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "from": self.scheduler,
            "source": self.source,
            "differences": [each._asdict() for each in self.general],
            "tasks": [
                {
                    "was": task.was,
                    "entry": _native(task.entry) or None,
                    "differences": [each._asdict() for each in task.differences],
                }
                for task in self.tasks
            ],
        }

    def as_python(self) -> str:
        return "\n".join(_lines(self)) + "\n"


def give_names(tasks: Sequence[ImportedTask]) -> None:
    """Give every entry a unique name that a declaration accepts."""
    taken: set[str] = set()
    for task in tasks:
        if task.entry:
            name = _unique(_slug(task.was), taken)
            taken.add(name)
            task.entry = {"name": name, **task.entry}
            if name != task.was:
                task.differ("name", f"was called {task.was!r}")


def _slug(text: str) -> str:
    slug = re.sub(r"[^a-z0-9.-]+", "-", text.lower())[:_LONGEST_NAME].strip("-.")
    return slug or "task"


def _unique(name: str, taken: set[str]) -> str:
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(each for each in names if each not in taken)


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
    values = (value for task in result.tasks for value in task.entry.values())
    if any(isinstance(value, timedelta) for value in values):
        yield "from datetime import timedelta"
    yield ""
    yield "SCHEDULED_TASKS = ["
    for task in result.tasks:
        yield from _task(task)
    yield "]"


def _task(task: ImportedTask) -> Iterator[str]:
    if not task.entry:
        yield from _comment(f"{task.was}: no entry", _INDENT)
    for each in task.differences:
        yield from _comment(f"- {each.about}: {each.text}", _INDENT, hanging=True)
    if task.entry:
        yield f"{_INDENT}{{"
        for key, value in task.entry.items():
            yield f"{_INDENT * 2}{_literal(key)}: {_literal(value)},"
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


def _literal(value: Any) -> str:
    match value:
        case timedelta():
            seconds = value.total_seconds()
            minutes, rest = divmod(seconds, 60)
            whole = f"minutes={minutes:.0f}" if not rest else f"seconds={seconds:.10g}"
            return f"timedelta({whole})"
        case str():
            return json.dumps(value, ensure_ascii=False) if value.isprintable() else repr(value)
        case list() | tuple():
            return f"[{', '.join(map(_literal, value))}]"
        case Mapping():
            pairs = (f"{_literal(key)}: {_literal(each)}" for key, each in value.items())
            return f"{{{', '.join(pairs)}}}"
    return repr(value)
