"""Decide about an occurrence during active runs of its task (002 Overlap Policies).

A run is active while it runs or waits for a worker. A pending retry is not active: the
occurrence pre-empts it.

A new policy is a name in ``Policy`` and a line in ``RULES``; other modules ask for its properties
and never for its name, which ``tests/test_architecture.py`` holds. What no combination of the
properties says needs a property more, and a case in ``decide_overlap``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

Policy = Literal["coalesce", "skip", "allow", "cancel_previous", "enqueue"]


@dataclass(frozen=True, slots=True)
class Rule:
    """The properties of a policy; without any of them, active runs let an occurrence be skipped.

    Args:
        is_concurrent: active runs do not block a start.
        cancels: a start asks the active runs to end.
        queues: occurrences wait for the active runs, and for a pending retry, in their order.
        defers: a task is not evaluated while it runs, so its occurrences stay due until the run
            has ended. ``decide_overlap`` is asked only if a run waits for a worker.
        past_run_reason: the reason of occurrences that came during a run and were found after
            its end, if the run blocked them for good.
    """

    is_concurrent: bool = False
    cancels: bool = False
    queues: bool = False
    defers: bool = False
    past_run_reason: str = ""


RULES: Final[Mapping[Policy, Rule]] = {
    "coalesce": Rule(defers=True, past_run_reason="coalesced"),
    "skip": Rule(past_run_reason="overlap_skip"),
    "allow": Rule(is_concurrent=True),
    "cancel_previous": Rule(is_concurrent=True, cancels=True),
    "enqueue": Rule(queues=True),
}
POLICIES: Final[tuple[Policy, ...]] = tuple(RULES)
DEFAULT_POLICY: Final[Policy] = "skip"
"""The policy of dict entries without the key."""
POLICY_OF_SHORT_FORM: Final[Policy] = "coalesce"
"""The policy of the short form, and of stored declarations without the key."""
# Tuples, because rows that were edited by hand may ask them for a value without a hash.
CONCURRENT: Final = tuple(name for name, rule in RULES.items() if rule.is_concurrent)
CANCELLING: Final = tuple(name for name, rule in RULES.items() if rule.cancels)
QUEUEING: Final = tuple(name for name, rule in RULES.items() if rule.queues)
DEFERRING: Final = tuple(name for name, rule in RULES.items() if rule.defers)

BACKLOG_WARNED_ABOVE: Final = 2
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
    """The occurrence stays due; when the run ends, the newest one that is due starts.

    The older ones are recorded as ``coalesced``.
    """


Overlap = Start | Skip | Wait | FollowUp


def decide_overlap(policy: Policy, active: Sequence[ActiveRun]) -> Overlap:
    """Decide for one occurrence that is due.

    Raises:
        ValueError: the policy is unknown.
    """
    if policy not in POLICIES:
        raise ValueError(f"unknown overlap policy {policy!r}, known: {', '.join(POLICIES)}")
    rule = RULES[policy]
    runs = sorted(active, key=lambda run: (run.waiting, run.scheduled_for))
    if rule.cancels:
        return Start(tuple(run.run for run in runs if not run.cancel_requested))
    if rule.is_concurrent or not runs:
        return Start()
    newest = runs[-1].run
    if rule.queues:
        return Wait(behind=newest)
    return FollowUp() if rule.defers else Skip(blocked_by=newest)
