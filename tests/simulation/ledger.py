"""What the invariants read: the rows at one instant, and what a story knows besides them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django_declarative_cron.core import events
from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.cron import parse
from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.testing import Record

Row = dict[str, Any]

RUNNING = "running"
DID_NOT_RUN = ("skipped", "missed")


@dataclass(slots=True)
class Snapshot:
    """All rows at one instant: tasks by name, runs oldest first, also those that did not run."""

    now: datetime
    states: list[Row]
    tasks: dict[str, Row]
    runs: list[Row]

    @classmethod
    def taken(cls, now: datetime) -> Snapshot:
        return cls(
            now,
            list(SchedulerState.objects.values()),
            {row["name"]: row for row in ScheduledTask.objects.values()},
            list(TaskRun.objects.order_by("id").values()),
        )

    def started(self, name: str, epochs: Iterable[int] | None = None) -> list[Row]:
        """Return the rows of a task's runs, oldest first."""
        wanted = None if epochs is None else set(epochs)
        return [
            run
            for run in self.runs
            if run["task_name"] == name
            and run["outcome"] not in DID_NOT_RUN
            and (wanted is None or run["epoch"] in wanted)
        ]

    def unserved(self, name: str, epoch: int) -> list[Row]:
        """Return the rows of what did not run, oldest first."""
        return [
            run
            for run in self.runs
            if run["task_name"] == name and run["outcome"] in DID_NOT_RUN and run["epoch"] == epoch
        ]


def schedule_of(task: Row) -> Schedule:
    """Return the schedule of a task's row, read anew from its declaration."""
    keys = task["declaration"]
    return Schedule(
        parse(task["cron"]), ZoneInfo(task["timezone"]), gap=keys["gap"], fold=keys["fold"]
    )


def mark_of(task: Row) -> datetime:
    """Return the instant up to which a task's row says that all is accounted for."""
    return max(task["registered_at"], task["discharged_at"] or task["registered_at"])


def delay_of(task: Row) -> timedelta:
    """Return how long after a failure a task's row lets it try again (RT-14)."""
    return task["retry_delay"] or timedelta(seconds=1)


Call = tuple[str, datetime, int, str]
"""A call of a callback: task name, start, attempt, reason."""


@dataclass(slots=True)
class Pause:
    """A pause of a person; ``until`` is ``None`` while it has no end."""

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
        self.calls[call] += 1

    def note_reset(self, event: events.TaskHighWaterMarkReset, **_: object) -> None:
        """Note a mark that was set back, as a receiver of the signal."""
        self.resets[event.task_name] = event.at

    def note_pause(self, name: str, at: datetime, until: datetime | None) -> None:
        """Note a pause; of a second one only its end counts."""
        pauses = self.pauses.setdefault(name, [])
        if not pauses or (pauses[-1].until is not None and pauses[-1].until <= at):
            pauses.append(Pause(at))
        pauses[-1].until = until

    def note_resume(self, name: str, at: datetime) -> None:
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
