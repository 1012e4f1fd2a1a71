"""Counting the rows of a leader: once a minute, and not where a start is near."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from django_declarative_cron.runtime import housekeeping
from django_declarative_cron.store.guard import Member

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MEMBER = cast(Member, None)


@pytest.mark.parametrize(
    ("passed", "until_next", "counts"),
    [
        (59, None, False),
        (60, None, True),
        (60, 3600, True),
        (60, 2, True),
        (60, 1.9, False),
        (69, 0.1, False),
        (70, 0.1, True),
        (-60, 3600, True),
    ],
)
def test_a_start_that_is_near_is_not_delayed_by_counting(
    monkeypatch: pytest.MonkeyPatch, passed: float, until_next: float | None, counts: bool
) -> None:
    counted: list[int] = []
    monkeypatch.setattr(housekeeping, "is_whole", lambda member, tasks: not counted.append(tasks))
    audit = housekeeping.RowAudit()
    assert not audit.finds_loss(MEMBER, 3, NOW, NOW)
    now = NOW + timedelta(seconds=passed)
    following = None if until_next is None else now + timedelta(seconds=until_next)
    assert not audit.finds_loss(MEMBER, 4, now, following)
    assert counted == ([3, 4] if counts else [3])
