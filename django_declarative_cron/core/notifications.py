"""Group and limit the notices that operators get; pure.

The first notice of an occasion of a task is sent immediately. Further ones are counted during
``again_after``, and then sent as one line. After each message a channel waits for ``pause`` and
gathers notices. So a task that fails each minute, or 1,000 tasks that fail together, cause a few
messages only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from ..formatting import iso8601
from .channels import Channel

MAX_LINES: Final = 20
"""Lines of one message; further notices are counted."""

MAX_KEYS: Final = 10_000

GATHER: Final = 2.0
"""Seconds that a first message waits for notices that occur together with it."""

_MAX_TEXT: Final = 300


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing that operators should know.

    Args:
        occasion: one of ``channels.OCCASIONS``, or ``test``.
        task: its name, or empty.
        at: the time.
        words: the description, in one line, without the task.
        times: number of occurrences.
    """

    occasion: str
    task: str
    at: datetime
    words: str
    times: int = 1

    @property
    def line(self) -> str:
        """Return the notice as one line of text."""
        # Errors are often whole sentences, and this sentence continues after them.
        words = " ".join(self.words.split()).removesuffix(".")
        words = words if len(words) <= _MAX_TEXT else words[: _MAX_TEXT - 1] + "…"
        again = "" if self.times == 1 else f" ({self.times} more times, the last of them shown)"
        name = f"{self.task}: " if self.task else ""
        return f"{name}{words}{again}, at {self.at:%Y-%m-%d %H:%M:%S} UTC"

    def as_data(self) -> dict[str, Any]:
        """Return the notice as JSON-native data."""
        return {
            "occasion": self.occasion,
            "task": self.task,
            "at": iso8601(self.at),
            "words": self.words,
            "times": self.times,
        }


def overdue_notice(task: str, since: datetime | None, at: datetime) -> Notice:
    """Return the notice of an overdue task."""
    words = "it should have started" + (f" at {since:%H:%M:%S} UTC" if since else "")
    return Notice("overdue", task, at, words)


@dataclass(frozen=True, slots=True)
class Message:
    """The notices that a channel sends together.

    Args:
        deployment: its name.
        notices: the first of them.
        total: their number.
    """

    deployment: str
    notices: tuple[Notice, ...]
    total: int

    @property
    def subject(self) -> str:
        """Return a short summary."""
        if self.total == 1:
            notice = self.notices[0]
            about = f": {notice.task}" if notice.task else ""
            return f"[cron {self.deployment}] {_TITLES[notice.occasion]}{about}"
        counts = Counter(notice.occasion for notice in self.notices)
        words = ", ".join(f"{_TITLES[key]} ({number})" for key, number in counts.items())
        return f"[cron {self.deployment}] {words}"

    @property
    def lines(self) -> list[str]:
        """Return one line for each notice, and the number of the others."""
        lines = [f"{_TITLES[notice.occasion]}. {notice.line}" for notice in self.notices]
        more = self.total - len(self.notices)
        return [*lines, *([f"And {more} more."] if more else [])]

    def as_data(self) -> dict[str, Any]:
        """Return the message as JSON-native data, for a webhook."""
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
class _Silence:
    """The time during which notices of one key are counted.

    Args:
        until: monotonic time of its end.
        newest: the newest notice that was only counted.
        times: number of those notices.
    """

    until: float
    newest: Notice | None = None
    times: int = 0


@dataclass(slots=True)
class NoticeQueue:
    """The notices that wait for one channel."""

    channel: Channel
    deployment: str
    _waiting: list[Notice] = field(default_factory=list)
    _silences: dict[tuple[str, str], _Silence] = field(default_factory=dict)
    _quiet_until: float = 0.0
    _more: int = 0

    def add(self, notice: Notice, now: float) -> None:
        """Queue a notice, or count it if a similar one was sent recently."""
        if not self.channel.wants(notice.occasion, notice.task):
            return
        key = notice.occasion, notice.task
        silence = self._silences.get(key)
        if silence is not None and now < silence.until:
            silence.newest, silence.times = notice, silence.times + notice.times
            return
        self._queue(key, notice, now)

    def due(self, now: float, *, hurry: bool = False) -> Message | None:
        """Return the message to send now, or ``None``."""
        self._queue_counted(now)
        if not self._waiting or (now < self._quiet_until and not hurry):
            return None
        notices, more = self._waiting, self._more
        self._waiting, self._more = [], 0
        self._quiet_until = now + self.channel.pause.total_seconds()
        return Message(self.deployment, tuple(notices), len(notices) + more)

    @property
    def due_at(self) -> float | None:
        """Return the monotonic time of the next message, as far as it is known."""
        counted = [silence.until for silence in self._silences.values() if silence.times]
        return min([*counted, *([self._quiet_until] if self._waiting else [])], default=None)

    def _queue(self, key: tuple[str, str], notice: Notice, now: float) -> None:
        self._silences.pop(key, None)
        self._silences[key] = _Silence(now + self.channel.again_after.total_seconds())
        if len(self._silences) > MAX_KEYS:
            self._silences.pop(next(iter(self._silences)))
        if not self._waiting:
            self._quiet_until = max(self._quiet_until, now + GATHER)
        if len(self._waiting) < MAX_LINES:
            self._waiting.append(notice)
        else:
            self._more += 1

    def _queue_counted(self, now: float) -> None:
        over = [key for key, silence in self._silences.items() if silence.until <= now]
        for key in over:
            silence = self._silences.pop(key)
            if silence.newest is not None:
                newest = silence.newest
                self._queue(key, Notice(*key, newest.at, newest.words, silence.times), now)


def test_message(deployment: str, at: datetime, author: str) -> Message:
    """Return a message that only shows that messages arrive."""
    words = f"{author} asked for this message, to see whether it arrives; nothing is wrong"
    return Message(deployment, (Notice("test", "", at, words),), 1)


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of a deployment, as one instance reads it.

    Args:
        at: the time.
        leads: whether the instance is the leader.
        speaks: whether the instance notifies if there is no leader.
        leaderless: seconds without a leader, ``None`` if there is one.
        failing: tasks with a failed newest run, with the number of failures and the error.
        overdue: tasks that should have started, with the time.
    """

    at: datetime
    leads: bool
    speaks: bool = False
    leaderless: float | None = None
    failing: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    overdue: Mapping[str, datetime | None] = field(default_factory=dict)


@dataclass(slots=True)
class Observer:
    """Compare each observation with the former one and with the events since then."""

    _failing: set[str] | None = None
    _changed: set[str] = field(default_factory=set)
    _overdue: set[str] = field(default_factory=set)
    _is_leaderless: bool = False

    def begin_poll(self) -> None:
        """Start to collect the events that are newer than the rows of the next observation."""
        self._changed = set()

    def task_failed(self, task: str) -> None:
        """Note an event, so that the next observation does not report the failure again."""
        self._changed.add(task)
        if self._failing is not None:
            self._failing.add(task)

    def task_succeeded(self, task: str) -> bool:
        """Return whether a task that succeeded was failing."""
        self._changed.add(task)
        if self._failing is None or task not in self._failing:
            return False
        self._failing.discard(task)
        return True

    def unknown(self, failing: Iterable[str]) -> list[str]:
        """Return the tasks with failures that are not known yet."""
        known = self._failing
        return [] if known is None else [task for task in failing if task not in known]

    def compare(self, observation: Observation) -> list[Notice]:
        """Return the notices of the changes."""
        found = list(self._of_leader(observation))
        if not observation.leads:
            # The leader notifies of tasks; its successor starts with the state that it reads.
            self._failing, self._overdue = None, set()
            return found
        return [*found, *self._of_failures(observation), *self._of_delays(observation)]

    def _of_leader(self, observation: Observation) -> Iterator[Notice]:
        if observation.leaderless is None:
            if self._is_leaderless:
                self._is_leaderless = False
                yield Notice("recovery", "", observation.at, "a scheduler leads again")
        elif observation.speaks:
            self._is_leaderless = True
            words = f"no scheduler has led for {observation.leaderless:.0f} s: nothing starts"
            yield Notice("no_leader", "", observation.at, words)

    def _of_failures(self, observation: Observation) -> Iterator[Notice]:
        failing, changed = observation.failing, self._changed
        if self._failing is None:
            self._failing = set(failing)
            return
        for task in sorted(failing.keys() - self._failing - changed):
            times, error = failing[task]
            text = error or f"failed {times} times in a row"
            yield Notice("failure", task, observation.at, text)
        for task in sorted(self._failing - failing.keys() - changed):
            yield Notice("recovery", task, observation.at, "it does not fail any more")
        self._failing = (set(failing) - changed) | (self._failing & changed)

    def _of_delays(self, observation: Observation) -> Iterator[Notice]:
        overdue = observation.overdue
        for task in sorted(overdue.keys() - self._overdue):
            yield overdue_notice(task, overdue[task], observation.at)
        for task in sorted(self._overdue - overdue.keys()):
            yield Notice("recovery", task, observation.at, "it is not overdue any more")
        self._overdue = set(overdue)
