"""Who starts first where a task may end its process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from django_declarative_cron.core.suspicion import first

NOW = datetime(2024, 1, 1, 10, tzinfo=UTC)


@dataclass
class Due:
    name: str
    interruptions: int
    wake_at: datetime | None


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
    assert [task.name for task in first(tasks, NOW, busy=busy)] == starts.split()
