"""The one answer to when a task starts next."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from django_declarative_cron.core.next_run import NextStart, next_start
from django_declarative_cron.core.state import TaskState


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 11, 28, hour, minute, tzinfo=UTC)


SOON = at(11)
PAUSED: dict[str, Any] = {"paused_since": at(9)}


@pytest.mark.parametrize(
    ("state", "next_run_at", "found"),
    [
        ({}, SOON, NextStart(SOON, "due")),
        ({}, None, None),
        ({"pending_retry_until": at(10, 45)}, SOON, NextStart(at(10, 45), "retry")),
        ({"pending_retry_until": at(10, 45)}, None, NextStart(at(10, 45), "retry")),
        ({"pending_retry_until": SOON}, SOON, NextStart(SOON, "retry")),
        ({"pending_retry_until": at(11, 15)}, SOON, NextStart(SOON, "due")),
        (PAUSED, None, None),
        ({**PAUSED, "pending_retry_until": at(10, 45)}, None, None),
        ({**PAUSED, "paused_until": at(12)}, at(12), NextStart(at(12), "due")),
        (
            {**PAUSED, "paused_until": at(12), "pending_retry_until": at(10, 45)},
            at(13),
            NextStart(at(12), "retry"),
        ),
        (
            {**PAUSED, "paused_until": at(12), "pending_retry_until": at(14)},
            at(13),
            NextStart(at(13), "due"),
        ),
    ],
)
def test_what_comes_first_and_is_not_paused_is_the_next_start(
    state: dict[str, Any], next_run_at: datetime | None, found: NextStart | None
) -> None:
    known = TaskState(name="a", registered_at=at(0), **state)
    assert next_start(known, next_run_at) == found


def test_an_occurrence_waits_for_the_retry_where_runs_are_queued() -> None:
    known = TaskState(name="a", registered_at=at(0), pending_retry_until=at(11, 15))
    assert next_start(known, SOON, "enqueue") == NextStart(at(11, 15), "retry")
