"""Decide about an occurrence during active runs of its task (002 Overlap Policies).

A run is active while it runs or waits for a worker. A pending retry is not active: the
occurrence pre-empts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

Policy = Literal["coalesce", "skip", "allow", "cancel_previous", "enqueue"]
POLICIES: Final[tuple[Policy, ...]] = ("coalesce", "skip", "allow", "cancel_previous", "enqueue")

CONCURRENT: Final[tuple[Policy, ...]] = ("allow", "cancel_previous")
"""Policies under which active runs do not block."""

MOST_WAITING: Final = 2
"""A warning is reported if more occurrences than this wait (CRON-S04)."""


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """A run that has not ended.

    Args:
        run: its identity.
        scheduled_for: its occurrence.
        waiting: it has not begun.
        cancel_requested: it was asked to end.
        reason: why it was started, or waits.
        reserved_until: when the next heartbeat of its external worker is due.
    """

    run: int
    scheduled_for: datetime
    waiting: bool = False
    cancel_requested: bool = False
    reason: str = "due"
    reserved_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """A run starts now, after some active runs are asked to end.

    Args:
        cancels: identities of those, oldest occurrence first.
    """

    cancels: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Skip:
    """The occurrence is skipped and recorded as ``overlap_skip``.

    Args:
        blocked_by: identity of the blocking run.
    """

    blocked_by: int


@dataclass(frozen=True, slots=True)
class Wait:
    """The run of the occurrence waits until the runs before it have ended.

    Args:
        behind: identity of the run directly before it.
        waiting: how many wait, this one included.
    """

    behind: int
    waiting: int


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The occurrence stays due until the active run ends; one run then covers all such.

    Args:
        after: identity of that run.
    """

    after: int


Overlap = Start | Skip | Wait | FollowUp


def decide_overlap(policy: Policy, active: Sequence[ActiveRun]) -> Overlap:
    """Decide for one occurrence that is due.

    Raises:
        ValueError: the policy is unknown.
    """
    if policy not in POLICIES:
        raise ValueError(f"unknown overlap policy {policy!r}, known: {', '.join(POLICIES)}")
    if not active or policy == "allow":
        return Start()
    runs = sorted(active, key=lambda run: (run.waiting, run.scheduled_for))
    if policy == "cancel_previous":
        return Start(tuple(run.run for run in runs if not run.cancel_requested))
    newest = runs[-1].run
    if policy == "enqueue":
        return Wait(behind=newest, waiting=1 + sum(run.waiting for run in runs))
    return Skip(blocked_by=newest) if policy == "skip" else FollowUp(after=newest)
