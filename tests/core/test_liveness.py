"""One watch goes on with another where they follow each other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from django_declarative_cron.core.liveness import gap_between, watched_since

START = datetime(2024, 1, 1, 10, tzinfo=UTC)
GAP = timedelta(seconds=5)


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


@pytest.mark.parametrize(
    ("watches", "now", "since"),
    [
        ([], 100, 100),
        ([(0, 100)], 100, 0),
        ([(0, 95)], 100, 0),
        ([(0, 94)], 100, 100),
        ([(0, 50), (45, 100)], 100, 0),
        ([(45, 100), (0, 50)], 100, 0),
        ([(55, 100), (0, 50)], 100, 0),
        ([(56, 100), (0, 50)], 100, 56),
        ([(90, 99), (10, 98), (0, 6)], 100, 0),
        ([(0, 200)], 100, 0),
        ([(10, 98), (0, 4)], 100, 10),
    ],
)
def test_since_when_somebody_has_watched(
    watches: list[tuple[int, int]], now: int, since: int
) -> None:
    told = [(at(begin), at(end)) for begin, end in watches]
    assert watched_since(told, at(now), GAP) == at(since)


@pytest.mark.parametrize(
    ("renew", "silence", "gap"), [(5, 15, 5), (5, 60, 5), (5, 12, 2), (7, 15, 1), (8, 15, 0)]
)
def test_a_gap_leaves_two_turns_to_say_that_one_lives(renew: int, silence: int, gap: int) -> None:
    found = gap_between(timedelta(seconds=renew), timedelta(seconds=silence))
    assert found == timedelta(seconds=gap)
    assert found + 2 * timedelta(seconds=renew) <= timedelta(seconds=max(silence, 2 * renew))
