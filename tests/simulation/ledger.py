"""What a story knows besides the rows: kept by whoever plays it, for the invariants."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django_declarative_cron.core import events
from django_declarative_cron.testing import Record

Call = tuple[str, datetime, int, str]
"""A call of a callback: task name, start, attempt, reason."""


@dataclass(slots=True)
class Pause:
    """A pause of a person.

    Args:
        since: its start.
        until: its end; ``None`` while there is none.
        is_resumed: a person ended it.
    """

    since: datetime
    until: datetime | None = None
    is_resumed: bool = False


@dataclass(eq=False)
class Ledger:
    """What happened, as far as the rows do not say it.

    Args:
        active: the active registration set, as the trace carries it; ``None`` before any.
        calls: of callbacks.
        bases: by task name and epoch, from when its occurrences are to be accounted for.
        chains: by task name, the epochs since its state began afresh.
        first_epochs: by the key of a task's row, its first epoch.
        pauses: by task name.
        disabled: by task name, the first step after which it was disabled, and is since.
        cleared: by task name, the key of its newest run when a person cleared its retry.
        settled: by the key of a run that is over, how it ended.
        newest_term: the highest so far.
        stepped_back: the clock has leapt back.
        resets: marks that were set back and not yet looked at.
    """

    active: list[Record] | None = None
    calls: Counter[Call] = field(default_factory=Counter)
    bases: dict[tuple[str, int], datetime] = field(default_factory=dict)
    chains: dict[str, list[int]] = field(default_factory=dict)
    first_epochs: dict[int, int] = field(default_factory=dict)
    pauses: dict[str, list[Pause]] = field(default_factory=dict)
    disabled: dict[str, datetime] = field(default_factory=dict)
    cleared: dict[str, int] = field(default_factory=dict)
    settled: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    newest_term: int = 0
    stepped_back: bool = False
    resets: dict[str, datetime] = field(default_factory=dict)

    def note_call(self, call: Call) -> None:
        """Take note of a callback that was called."""
        self.calls[call] += 1

    def note_reset(self, event: events.TaskHighWaterMarkReset, **_: object) -> None:
        """Take note of a mark that was set back, as a receiver of the signal."""
        self.resets[event.task_name] = event.at

    def note_pause(self, name: str, at: datetime, until: datetime | None) -> None:
        """Take note of a pause; of a second one only its end counts."""
        pauses = self.pauses.setdefault(name, [])
        if not pauses or (pauses[-1].until is not None and pauses[-1].until <= at):
            pauses.append(Pause(at))
        pauses[-1].until = until

    def note_resume(self, name: str, at: datetime) -> None:
        """Take note of the end of a pause."""
        for pause in self.pauses.get(name, [])[-1:]:
            if pause.until is None or pause.until > at:
                pause.until, pause.is_resumed = at, True

    def follow(self, tasks: list[dict[str, Any]], now: datetime) -> None:
        """Look at the tasks' rows after a step: what is new of them, and why."""
        disabled = [row["name"] for row in tasks if not row["enabled"]]
        self.disabled = {name: self.disabled.get(name, now) for name in disabled}
        for row in tasks:
            name, epoch = row["name"], row["epoch"]
            self.first_epochs.setdefault(row["id"], epoch)
            if (name, epoch) in self.bases:
                continue
            reset_at = self.resets.pop(name, None)
            self.bases[name, epoch] = row["registered_at"] if reset_at is None else reset_at
            chain = self.chains.setdefault(name, [])
            if reset_at is None:
                chain.clear()
            chain.append(epoch)
        self.resets.clear()
