"""What became of the tasks of another scheduler: entries, and what is different now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
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
"""What a difference is about."""

NO_RETRY: Final[Mapping[str, Any]] = {"max_attempts": 1}
"""The policy of a task that nobody tries again, as an entry has it."""

_LONGEST_NAME: Final = 100


class Difference(NamedTuple):
    """Say what is not as it was.

    Args:
        about: what it is about.
        text: a sentence without a stop.
    """

    about: About
    text: str


@dataclass(frozen=True, slots=True)
class Moved:
    """One task.

    Args:
        was: what it was called.
        entry: of ``SCHEDULED_TASKS``, ``None`` where nothing there means the same.
        differences: what is not as it was, or why there is no entry.
    """

    was: str
    entry: Mapping[str, Any] | None
    differences: tuple[Difference, ...] = ()

    def but(self, *differences: Difference) -> Moved:
        """Return it with more differences."""
        return replace(self, differences=(*self.differences, *differences))

    def refused(self, text: str) -> Moved:
        """Return it without an entry, for a reason."""
        return replace(self.but(Difference("refused", text)), entry=None)


@dataclass(frozen=True, slots=True)
class Moving:
    """Everything that was read from one scheduler.

    Args:
        rival: its name on the command line.
        source: where it was read.
        tasks: in their order there.
        general: differences of all of them.
    """

    rival: str
    source: str
    tasks: tuple[Moved, ...]
    general: tuple[Difference, ...] = ()


class UntranslatableError(ValueError):
    """Tell that nothing here means what was written there; the text says why."""


def named(tasks: Iterable[Moved]) -> tuple[Moved, ...]:
    """Return every entry a name of its own that the long form accepts."""
    taken: set[str] = set()
    found = []
    for task in tasks:
        if task.entry is None:
            found.append(task)
            continue
        name = _unique(_slug(task.was), taken)
        taken.add(name)
        entry = {"name": name, **task.entry}
        changed = () if name == task.was else (Difference("name", f"was called {task.was!r}"),)
        found.append(replace(task, entry=entry).but(*changed))
    return tuple(found)


def _slug(text: str) -> str:
    made = re.sub(r"[^a-z0-9.-]+", "-", text.lower())[:_LONGEST_NAME].strip("-.")
    return made or "task"


def _unique(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"
