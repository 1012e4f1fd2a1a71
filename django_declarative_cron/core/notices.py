"""What people are told, when, and how often: grouped, and not again and again; pure.

The same occasion of the same task is told at once and then counted for ``again_after``; what
was counted is told in one line when that is over. After each message a channel is silent for
``pause`` and gathers what comes. So a task that fails every minute, and a thousand that fail
together, make a handful of messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from .channel import Channel

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
        """Give it as JSON-native data."""
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
        """Give it as JSON-native data, for a webhook."""
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
        """Take something in.

        Args:
            notice: what happened.
            now: monotonic second.
        """
        if not self.channel.wants(notice.occasion, notice.task):
            return
        key = notice.occasion, notice.task
        told = self._told.get(key)
        if told is not None and now < told.until:
            told.newest, told.times = notice, told.times + notice.times
            return
        self._tell(key, notice, now)

    def due(self, now: float, *, hurry: bool = False) -> Message | None:
        """Give what is to be told now, ``None`` where nothing is.

        Args:
            now: monotonic second.
            hurry: there will be no later.
        """
        self._collect_counted(now)
        if not self._waiting or (now < self._quiet_until and not hurry):
            return None
        notices, more = self._waiting, self._more
        self._waiting, self._more = [], 0
        self._quiet_until = now + self.channel.pause.total_seconds()
        return Message(self.deployment, tuple(notices), len(notices) + more)

    @property
    def due_at(self) -> float | None:
        """Give the monotonic second at which something is to be told, as far as is known."""
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
    """Give a message that only shows that messages arrive.

    Args:
        deployment: of which it is sent.
        at: the instant.
        author: who asked for it.
    """
    words = f"{author} asked for this message, to see whether it arrives; nothing is wrong"
    return Message(deployment, (Notice("test", "", at, words),), 1)
