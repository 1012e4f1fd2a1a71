"""Frozen time, in figures."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.theory.operators import FrozenTime

from .notation import at


def _total(frozen: FrozenTime, seconds: float) -> float:
    return frozen.total(at(seconds)) / timedelta(seconds=1)


def test_nothing_is_frozen_until_something_is() -> None:
    frozen = FrozenTime()
    frozen.thaw(at(5))
    assert (_total(frozen, 10), frozen.covers(at(10))) == (0, False)


@pytest.mark.parametrize(
    ("seconds", "is_covered", "total"),
    [(10, True, 0), (15, True, 5), (20, False, 10), (30, False, 10)],
)
def test_a_freeze_covers_its_start_and_not_its_end(
    seconds: float, is_covered: bool, total: float
) -> None:
    frozen = FrozenTime()
    frozen.freeze(at(10), at(20))
    assert (frozen.covers(at(seconds)), _total(frozen, seconds)) == (is_covered, total)


@pytest.mark.parametrize(
    ("second", "total"),
    [
        ((12, 18), 10),  # within
        ((12, 25), 15),  # beyond
        ((20, 25), 15),  # right behind
        ((30, 33), 13),  # apart
    ],
)
def test_freezes_that_overlap_count_once(second: tuple[float, float], total: float) -> None:
    frozen = FrozenTime()
    frozen.freeze(at(10), at(20))
    frozen.freeze(at(second[0]), at(second[1]))
    assert _total(frozen, 40) == total


@pytest.mark.parametrize(("seconds", "total"), [(10, 0), (14, 4), (20, 10), (30, 10)])
def test_an_action_ends_the_freeze_it_is_in_and_no_other(seconds: float, total: float) -> None:
    frozen = FrozenTime()
    frozen.freeze(at(10), at(20))
    frozen.thaw(at(seconds))
    assert _total(frozen, 40) == total
