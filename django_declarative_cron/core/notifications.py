"""What people are told, when, and how often: grouped, and not again and again; pure.

The same occasion of the same task is told at once and then counted for ``again_after``; what
was counted is told in one line when that is over. After each message a channel is silent for
``pause`` and gathers what comes. So a task that fails every minute, and a thousand that fail
together, make a handful of messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from .channels import Channel

MOST_LINES: Final = 20
"""The most lines of one message; the others are counted."""

MOST_KEYS: Final = 10_000

GATHER: Final = 2.0
"""Seconds that a first message waits for what comes together with it."""

_LONGEST_WORDS: Final = 300


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that people are to be told.

    Args:
        occasion: one of ``channel.OCCASIONS``, or ``test``.
        task: its name, empty where it is about none.
        at: the instant.
        words: what happened, in one line without the task.
        times: how often, where that was counted.
    """

    occasion: str
    task: str
    at: datetime
    words: str
    times: int = 1

    @property
    def line(self) -> str:
        """Say it in one line."""
        # Errors are often whole sentences; this one goes on.
        words = " ".join(self.words.split()).removesuffix(".")
        words = words if len(words) <= _LONGEST_WORDS else words[: _LONGEST_WORDS - 1] + "…"
        again = "" if self.times == 1 else f" ({self.times} more times, the last of them shown)"
        name = f"{self.task}: " if self.task else ""
        return f"{name}{words}{again}, at {self.at:%Y-%m-%d %H:%M:%S} UTC"

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON-native data."""
        return {
            "occasion": self.occasion,
            "task": self.task,
            "at": self.at.isoformat().replace("+00:00", "Z"),
            "words": self.words,
            "times": self.times,
        }


@dataclass(frozen=True, slots=True)
class Message:
    """What one channel tells at once.

    Args:
        deployment: of which.
        notices: the first of them.
        total: how many there are.
    """

    deployment: str
    notices: tuple[Notice, ...]
    total: int

    @property
    def subject(self) -> str:
        """Say it in a few words."""
        if self.total == 1:
            notice = self.notices[0]
            about = f": {notice.task}" if notice.task else ""
            return f"[cron {self.deployment}] {_TITLES[notice.occasion]}{about}"
        counts: dict[str, int] = {}
        for notice in self.notices:
            counts[notice.occasion] = counts.get(notice.occasion, 0) + 1
        words = ", ".join(f"{_TITLES[key]} ({number})" for key, number in counts.items())
        return f"[cron {self.deployment}] {words}"

    @property
    def lines(self) -> list[str]:
        """Say all of it, a line for each."""
        lines = [f"{_TITLES[notice.occasion]}. {notice.line}" for notice in self.notices]
        more = self.total - len(self.notices)
        return [*lines, *([f"And {more} more."] if more else [])]

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON-native data, for a webhook."""
        return {
            "deployment": self.deployment,
            "subject": self.subject,
            "total": self.total,
            "notices": [notice.as_data() for notice in self.notices],
        }


_TITLES: Final = {
    "failure": "Failed",
    "recovery": "Recovered",
    "overdue": "Overdue",
    "missed": "Missed",
    "no_leader": "No leader",
    "test": "Test",
}


@dataclass(slots=True)
class _Told:
    """What was told of one key, and what was counted since.

    Args:
        until: monotonic second until which it is counted.
        newest: the newest that was only counted.
        times: how many those are.
    """

    until: float
    newest: Notice | None = None
    times: int = 0


@dataclass(slots=True)
class Ledger:
    """What one channel has told and is to tell.

    Args:
        channel: by whose limits.
        deployment: of which it tells.
    """

    channel: Channel
    deployment: str
    _waiting: list[Notice] = field(default_factory=list)
    _told: dict[tuple[str, str], _Told] = field(default_factory=dict)
    _quiet_until: float = 0.0
    _more: int = 0

    def add(self, notice: Notice, now: float) -> None:
        """Take something in."""
        if not self.channel.wants(notice.occasion, notice.task):
            return
        key = notice.occasion, notice.task
        told = self._told.get(key)
        if told is not None and now < told.until:
            told.newest, told.times = notice, told.times + notice.times
            return
        self._tell(key, notice, now)

    def due(self, now: float, *, hurry: bool = False) -> Message | None:
        """Return what is to be told now, ``None`` where nothing is."""
        self._collect_counted(now)
        if not self._waiting or (now < self._quiet_until and not hurry):
            return None
        notices, more = self._waiting, self._more
        self._waiting, self._more = [], 0
        self._quiet_until = now + self.channel.pause.total_seconds()
        return Message(self.deployment, tuple(notices), len(notices) + more)

    @property
    def due_at(self) -> float | None:
        """Return the monotonic second at which something is to be told, as far as is known."""
        counted = [told.until for told in self._told.values() if told.times]
        return min([*counted, *([self._quiet_until] if self._waiting else [])], default=None)

    def _tell(self, key: tuple[str, str], notice: Notice, now: float) -> None:
        self._told.pop(key, None)
        self._told[key] = _Told(now + self.channel.again_after.total_seconds())
        if len(self._told) > MOST_KEYS:
            self._told.pop(next(iter(self._told)))
        if not self._waiting:
            self._quiet_until = max(self._quiet_until, now + GATHER)
        if len(self._waiting) < MOST_LINES:
            self._waiting.append(notice)
        else:
            self._more += 1

    def _collect_counted(self, now: float) -> None:
        over = [key for key, told in self._told.items() if told.until <= now]
        for key in over:
            told = self._told.pop(key)
            if told.newest is not None:
                newest = told.newest
                again = Notice(*key, newest.at, newest.words, told.times)
                self._tell(key, again, now)


def trial_message(deployment: str, at: datetime, author: str) -> Message:
    """Return a message that only shows that messages arrive."""
    words = f"{author} asked for this message, to see whether it arrives; nothing is wrong"
    return Message(deployment, (Notice("test", "", at, words),), 1)


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
        """Know from an event that a task fails, so that a look does not tell of it again."""
        self._heard.add(task)
        if self._failing is not None:
            self._failing.add(task)

    def hear_success(self, task: str) -> bool:
        """Return whether a task that succeeds was failing."""
        self._heard.add(task)
        if self._failing is None or task not in self._failing:
            return False
        self._failing.discard(task)
        return True

    def unknown(self, failing: Iterable[str]) -> list[str]:
        """Return the tasks that are to be told of, should nothing more be heard of them."""
        known = self._failing
        return [] if known is None else [task for task in failing if task not in known]

    def compare(self, look: Look) -> list[Notice]:
        """Return what is worth telling."""
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
