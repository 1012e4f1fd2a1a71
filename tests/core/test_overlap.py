"""What becomes of an occurrence while runs of its task are active."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations
from typing import get_args

import pytest

from django_declarative_cron.core.overlap import (
    POLICIES,
    ActiveRun,
    FollowUp,
    Overlap,
    Policy,
    Skip,
    Start,
    Wait,
    decide_overlap,
)


def at(hour: int) -> datetime:
    return datetime(2024, 1, 1, hour, tzinfo=UTC)


RUNNING = ActiveRun("a", at(10))
SECOND = ActiveRun("b", at(11))
ENDING = ActiveRun("c", at(9), cancel_requested=True)
QUEUED = ActiveRun("d", at(12), waiting=True)
QUEUED_LATER = ActiveRun("e", at(13), waiting=True)
QUEUED_EARLY = ActiveRun("f", at(8), waiting=True)


def test_each_policy_has_a_rule() -> None:
    assert get_args(Policy) == POLICIES


@pytest.mark.parametrize("policy", POLICIES)
def test_without_an_active_run_each_policy_starts(policy: Policy) -> None:
    assert decide_overlap(policy, []) == Start()


@pytest.mark.parametrize(
    ("policy", "active", "expected"),
    [
        pytest.param("skip", [RUNNING], Skip("a"), id="CRON-18 skip"),
        pytest.param("skip", [QUEUED], Skip("d"), id="a run that waits for a worker is active"),
        pytest.param("skip", [ENDING], Skip("c"), id="a run that is to end is still active"),
        pytest.param("skip", [RUNNING, SECOND], Skip("b"), id="the newest of several blocks"),
        pytest.param("allow", [RUNNING, SECOND], Start(), id="CRON-18 allow"),
        pytest.param("cancel_previous", [RUNNING], Start(("a",)), id="CRON-18 cancel_previous"),
        pytest.param("cancel_previous", [ENDING], Start(), id="nothing is cancelled twice"),
        pytest.param(
            "cancel_previous", [SECOND, QUEUED, ENDING, RUNNING], Start(("a", "b", "d")),
            id="all are cancelled, those that wait too",
        ),
        pytest.param("enqueue", [RUNNING], Wait("a"), id="CRON-18 enqueue"),
        pytest.param("enqueue", [RUNNING, QUEUED], Wait("d"), id="behind the one that waits"),
        pytest.param(
            "enqueue", [QUEUED_LATER, RUNNING, QUEUED], Wait("e"), id="behind all that wait",
        ),
        pytest.param(
            "enqueue", [RUNNING, QUEUED_EARLY], Wait("f"), id="behind one that waits since long",
        ),
        pytest.param("coalesce", [RUNNING], FollowUp(), id="coalesce"),
    ],
)  # fmt: skip
def test_the_decision(policy: Policy, active: list[ActiveRun], expected: Overlap) -> None:
    for order in permutations(active):
        assert decide_overlap(policy, order) == expected


def test_an_unknown_policy_is_the_caller_s_mistake() -> None:
    with pytest.raises(ValueError, match="unknown overlap policy 'queue'"):
        decide_overlap("queue", [RUNNING])  # type: ignore[arg-type]
