"""Which tasks are out of the theory's sight, and until when; pure.

The theory knows no people. A task that somebody pauses, runs by hand or clears the retry of is
taken off the list at the act, and put back at the first occurrence after it at which nothing of
the task runs: from there on its past is of no consequence, whatever it was. The same is done
where the past is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

Cause = Literal["people", "clock", "rows", "start"]

MARGIN = timedelta(minutes=1)
"""How long after an act a task stays away: the clocks of two machines may differ."""


@dataclass(slots=True)
class Absence:
    """Why and how long a task is away.

    Args:
        cause: ``people`` by somebody's act, ``clock`` as it was set back, ``rows`` where rows
            were lost or damaged, ``start`` where the history begins.
        after: it comes back after this instant, ``None`` for not before something happens.
        expected: when it is planned to come back.
    """

    cause: Cause
    after: datetime | None
    expected: datetime | None = None

    def ready_after(self, now: datetime) -> datetime | None:
        """Give the instant after which the next occurrence may bring the task back.

        Args:
            now: before which nothing is planned.
        """
        return None if self.after is None else max(self.after + MARGIN, now)


class Absences:
    """All tasks that are away, or are to be kept away."""

    def __init__(self, begun: dict[str, datetime]) -> None:
        self._away = {name: Absence("start", after) for name, after in begun.items()}
        self._paused: dict[str, datetime | None] = {}
        self._disabled: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._away

    def __iter__(self) -> Iterator[str]:
        return iter(self._away)

    def of(self, name: str) -> Absence | None:
        """Give the absence of a task, ``None`` for one that is here."""
        return self._away.get(name)

    def leave(self, name: str, cause: Cause, after: datetime) -> bool:
        """Let a task be away until after an instant at least.

        Args:
            name: of the task.
            cause: why.
            after: the instant.

        Returns:
            whether it was here.
        """
        absence = self._away.get(name)
        if absence is None:
            self._away[name] = Absence(cause, self._end_of_pause(name, after))
            return True
        absence.after = self._end_of_pause(name, max(after, absence.after or after))
        absence.expected = None
        return False

    def come_back(self, name: str) -> None:
        """Let a task be here again."""
        del self._away[name]

    def pause(self, name: str, at: datetime, until: datetime | None) -> bool:
        """Follow somebody's pause; tell whether the task was here."""
        self._paused[name] = until
        return self.leave(name, "people", at)

    def resume(self, name: str, at: datetime) -> None:
        """Follow the end of a pause."""
        self._paused.pop(name, None)
        if name in self._away:
            self.leave(name, "people", at)

    def disable(self, name: str, at: datetime) -> None:
        """Follow ``enabled`` switched off, which is a pause."""
        self._disabled.add(name)
        self.leave(name, "people", at)

    def enable(self, names: Iterable[str], at: datetime) -> None:
        """Follow ``enabled`` switched on.

        Args:
            names: of all tasks that are enabled now.
            at: since when.
        """
        for name in self._disabled.intersection(names):
            self._disabled.remove(name)
            self.leave(name, "people", at)

    def _end_of_pause(self, name: str, after: datetime) -> datetime | None:
        if name in self._disabled:
            return None
        if name not in self._paused:
            return after
        until = self._paused[name]
        return None if until is None else max(until, after)
