"""Who starts first where a task may end its process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.core.repeated_failures import first

NOW = datetime(2024, 1, 1, 10, tzinfo=UTC)


@dataclass
class Due:
    name: str
    interruptions: int
    wake_at: datetime | None
    orphaned: bool = False
    next_run_at: datetime | None = None
    boot_at: datetime | None = None
    pending_retry_until: datetime | None = None
    last_attempt_at: datetime | None = None
    freed_at: datetime | None = None


@pytest.mark.parametrize(
    ("due", "busy", "starts"),
    [
        ("a0 b2", False, "a b"),
        ("a0 b2", True, "a b"),
        ("a3", False, "a"),
        ("a3", True, ""),
        ("a3 b0", False, "b"),
        ("a5 b3 c4", False, "b"),
        ("a5 b3", True, ""),
        ("a3@29 b0", True, "b"),
        ("a3@30 b0", True, "b a"),
        ("a4@99 b3@30 c0", True, "c b"),
        ("", True, ""),
    ],
)
def test_who_starts(due: str, busy: bool, starts: str) -> None:
    tasks = []
    for word in due.split():
        name, _, waited = word.partition("@")
        wake_at = NOW - timedelta(seconds=int(waited or 0))
        tasks.append(Due(name[0], int(name[1:]), wake_at))
    assert [task.name for task in first(tasks, NOW, busy=busy, led_since=None)] == starts.split()


def ago(seconds: int) -> datetime:
    return NOW - timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("since", "is_tired"),
    [
        ({"next_run_at": ago(30)}, True),
        ({"next_run_at": ago(29)}, False),
        ({"boot_at": ago(30)}, True),
        ({"pending_retry_until": ago(30)}, True),
        ({"orphaned": True, "last_attempt_at": ago(30)}, True),
        ({"last_attempt_at": ago(30)}, False),
        ({"last_attempt_at": ago(29), "next_run_at": ago(60)}, False),
        ({"freed_at": ago(29), "next_run_at": ago(60)}, False),
        ({"freed_at": ago(86_400)}, False),
        ({"next_run_at": NOW + timedelta(seconds=30)}, False),
    ],
)
def test_a_wait_begins_anew_with_a_leader_and_not_with_an_act(
    since: dict[str, Any], is_tired: bool
) -> None:
    task = Due("a", 3, NOW, **since)
    assert first([task], NOW, busy=True, led_since=ago(60)) == ([task] if is_tired else [])
    assert first([task], NOW, busy=True, led_since=ago(29)) == []
