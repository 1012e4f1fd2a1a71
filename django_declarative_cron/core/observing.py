"""What is worth telling people of what a look at the rows shows; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from .notices import Notice


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at a deployment shows.

    Args:
        at: the instant.
        leads: whether the one who looks leads.
        speaks: whether it is the one to tell that nobody leads.
        leaderless: seconds for which nobody has led, ``None`` where somebody does.
        failing: tasks whose newest run failed: how often in a row, and why.
        overdue: tasks that have been due for too long, with the instant.
    """

    at: datetime
    leads: bool
    speaks: bool = False
    leaderless: float | None = None
    failing: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    overdue: Mapping[str, datetime | None] = field(default_factory=dict)


@dataclass(slots=True)
class Observer:
    """Compare each look with what was known, and with what events have told."""

    _failing: set[str] | None = None
    _heard: set[str] = field(default_factory=set)
    _overdue: set[str] = field(default_factory=set)
    _is_leaderless: bool = False

    def begin_look(self) -> None:
        """Say that rows are about to be read: what is heard from now on is newer than they are."""
        self._heard = set()

    def hear_failure(self, task: str) -> None:
        """Know from an event that a task fails, so that a look does not tell of it again.

        Args:
            task: its name.
        """
        self._heard.add(task)
        if self._failing is not None:
            self._failing.add(task)

    def hear_success(self, task: str) -> bool:
        """Tell whether a task that succeeds was failing.

        Args:
            task: its name.
        """
        self._heard.add(task)
        if self._failing is None or task not in self._failing:
            return False
        self._failing.discard(task)
        return True

    def unknown(self, failing: Iterable[str]) -> list[str]:
        """Give the tasks that are to be told of, should nothing more be heard of them.

        Args:
            failing: tasks whose newest run failed.
        """
        known = self._failing
        return [] if known is None else [task for task in failing if task not in known]

    def compare(self, look: Look) -> list[Notice]:
        """Give what is worth telling.

        Args:
            look: the newest.
        """
        found = list(self._of_the_lead(look))
        if not look.leads:
            # Whoever leads tells of tasks; who comes after it begins with what it finds.
            self._failing, self._overdue = None, set()
            return found
        return [*found, *self._of_failures(look), *self._of_delays(look)]

    def _of_the_lead(self, look: Look) -> Iterator[Notice]:
        if look.leaderless is None:
            if self._is_leaderless:
                self._is_leaderless = False
                yield Notice("recovery", "", look.at, "a scheduler leads again")
        elif look.speaks:
            self._is_leaderless = True
            words = f"no scheduler has led for {look.leaderless:.0f} s: nothing starts"
            yield Notice("no_leader", "", look.at, words)

    def _of_failures(self, look: Look) -> Iterator[Notice]:
        if self._failing is None:
            self._failing = set(look.failing)
            return
        heard = self._heard
        for task in sorted(look.failing.keys() - self._failing - heard):
            times, error = look.failing[task]
            yield Notice("failure", task, look.at, error or f"failed {times} times in a row")
        for task in sorted(self._failing - look.failing.keys() - heard):
            yield Notice("recovery", task, look.at, "it does not fail any more")
        self._failing = (set(look.failing) - heard) | (self._failing & heard)

    def _of_delays(self, look: Look) -> Iterator[Notice]:
        for task in sorted(look.overdue.keys() - self._overdue):
            since = look.overdue[task]
            words = "it should have started" + (f" at {since:%H:%M:%S} UTC" if since else "")
            yield Notice("overdue", task, look.at, words)
        for task in sorted(self._overdue - look.overdue.keys()):
            yield Notice("recovery", task, look.at, "it is not overdue any more")
        self._overdue = set(look.overdue)
