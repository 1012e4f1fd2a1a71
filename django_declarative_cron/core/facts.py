"""What is stored of one task around an instant, as far as ``why`` needs it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .overlap import Policy
from .schedule import Schedule
from .state import TaskState


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the history.

    Args:
        key: its primary key.
        scheduled_for: its occurrence, the last of a range.
        scheduled_from: the first of a range, otherwise ``None``.
        started_at: ``None`` where nothing ran.
        finished_at: ``None`` while it runs.
        outcome: how it ended.
        reason: why it began, or why nothing ran.
        attempt: its number.
        error: one line.
        blocked_by: the run that was in its way, if the row says so.
        is_offered: an external worker may fetch it.
        calendar: which one excluded it, if one did.
        author: who let it pass, if somebody did.
        note: why.
        gone_since: the last sign of life of its process, where nothing carries it on any more.
    """

    key: int
    scheduled_for: datetime
    scheduled_from: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    outcome: str
    reason: str
    attempt: int = 1
    error: str = ""
    blocked_by: int | None = None
    is_offered: bool = False
    calendar: str = ""
    author: str = ""
    note: str = ""
    gone_since: datetime | None = None

    def covers(self, occurrence: datetime) -> bool:
        """Tell whether an occurrence is among those the row accounts for."""
        return (self.scheduled_from or self.scheduled_for) <= occurrence <= self.scheduled_for

    def was_running(self, instant: datetime) -> bool:
        """Tell whether it had started and not ended."""
        if self.started_at is None or self.started_at > instant:
            return False
        return self.finished_at is None or self.finished_at >= instant


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause by a person, or by the scheduler itself.

    Args:
        since: when it began.
        until: when it ended or will end, ``None`` where only a person ends it.
        author: who paused.
        note: why.
        reason: why the scheduler paused it itself; empty for a person's pause.
    """

    since: datetime
    until: datetime | None
    author: str
    note: str = ""
    reason: str = ""

    def covers(self, instant: datetime) -> bool:
        """Tell whether an instant lies under it."""
        return self.since <= instant and (self.until is None or instant < self.until)


@dataclass(frozen=True, slots=True)
class Skip:
    """An occurrence that a person skips.

    Args:
        at: the occurrence.
        author: the person.
        note: why.
    """

    at: datetime
    author: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is stored of one task.

    Args:
        now: the instant of asking.
        state: as of the last event.
        schedule: ``None`` where its row is damaged.
        problem: why it is broken, or empty.
        enabled: ``False`` where the declaration switches it off.
        is_attended: a scheduler was heard of lately.
        rows: of the history around the instant asked about, oldest first.
        pauses: around the instant, the newest first.
        known_before: it ran before it was registered as it is now.
        history_from: from when on its history is complete.
        policy: what becomes of an occurrence while a run is active.
        skip: the pending act by which a person skips an occurrence, if there is one.
    """

    now: datetime
    state: TaskState
    schedule: Schedule | None
    problem: str = ""
    enabled: bool = True
    is_attended: bool = True
    rows: tuple[Row, ...] = ()
    pauses: tuple[Pause, ...] = ()
    known_before: bool = False
    history_from: datetime | None = None
    policy: Policy = "coalesce"
    skip: Skip | None = None
