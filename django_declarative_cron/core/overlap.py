"""Decide about an occurrence during active runs of its task (002 Overlap Policies).

A run is active while it runs or waits for a worker. A pending retry is not active: the
occurrence pre-empts it.

A new policy is a name in ``Policy``, a line in ``RULES`` and a case in ``decide_overlap``. Under
``coalesce`` most decisions are not made here: ``decide`` and ``next_run`` leave a task alone while
it runs, so ``decide_overlap`` is asked about it only where a run waits for a worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

Policy = Literal["coalesce", "skip", "allow", "cancel_previous", "enqueue"]


@dataclass(frozen=True, slots=True)
class Rule:
    """The properties of a policy that other modules depend on.

    Args:
        is_concurrent: active runs do not block a start.
        cancels: a start asks the active runs to end.
        missed_as: the reason of missed occurrences during a past run, if it blocked them for
            good. Under ``enqueue`` they would have waited.
    """

    is_concurrent: bool = False
    cancels: bool = False
    missed_as: str = ""


RULES: Final[Mapping[Policy, Rule]] = {
    "coalesce": Rule(missed_as="coalesced"),
    "skip": Rule(missed_as="overlap_skip"),
    "allow": Rule(is_concurrent=True),
    "cancel_previous": Rule(is_concurrent=True, cancels=True),
    "enqueue": Rule(),
}
POLICIES: Final[tuple[Policy, ...]] = tuple(RULES)
DEFAULT_POLICY: Final[Policy] = "skip"
"""The policy of dict entries without the key."""
POLICY_OF_ROWS: Final[Policy] = "coalesce"
"""The policy of stored declarations without the key; it never loses an occurrence."""
CONCURRENT: Final = frozenset(name for name, rule in RULES.items() if rule.is_concurrent)
CANCELLING: Final = frozenset(name for name, rule in RULES.items() if rule.cancels)

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
    """

    behind: int


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The occurrence stays due until the active run ends; one run then covers all such."""


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
    if policy in CANCELLING:
        return Start(tuple(run.run for run in runs if not run.cancel_requested))
    newest = runs[-1].run
    if policy == "enqueue":
        return Wait(behind=newest)
    return Skip(blocked_by=newest) if policy == "skip" else FollowUp()
