"""A registration that begins in one minute and ends in the next: one boot run, nothing missed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from django_declarative_cron import signals
from django_declarative_cron.core.overlap import POLICIES
from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, Started, utc

EVERY_MINUTE = "* * * * *"
BEFORE, AFTER = "10:00:59.900", "10:01:00.200"
HISTORY = [("succeeded", "boot", utc("10:01"), utc(AFTER))]


@contextmanager
def stepped(sim: Simulation, signal: str, to: str = AFTER) -> Iterator[None]:
    """Let time pass when an event is published: rows are written, and nothing has started."""

    def step(**_: Any) -> None:
        sim.clock.advance(utc(to))

    signals.SIGNALS[signal].connect(step)
    try:
        yield
    finally:
        signals.SIGNALS[signal].disconnect(step)


def history(sim: Simulation, name: str = "t") -> list[tuple[Any, ...]]:
    rows = sim.runs(name)
    return [(row.outcome, row.reason, row.scheduled_for, row.started_at) for row in rows]


def entry(sim: Simulation, **keys: Any) -> dict[str, Any]:
    return {"name": "t", "cron": EVERY_MINUTE, "callback": sim.job(), **keys}


def test_a_new_task(simulation: Started) -> None:
    sim = simulation(BEFORE)
    with stepped(sim, "task_added"):
        sim.initialize([("t", EVERY_MINUTE, sim.job(), FIVE_MINUTES)])
    assert history(sim) == HISTORY
    sim.advance_to("2024-01-01T10:02Z")
    assert [row.reason for row in sim.runs("t")] == ["boot", "due"]


@pytest.mark.parametrize(
    ("keys", "occurrence", "begin", "end"),
    [
        *(({"overlap_policy": policy}, "10:01", BEFORE, AFTER) for policy in POLICIES),
        *(({"catch_up_window": seconds}, "10:01", BEFORE, AFTER) for seconds in (0, 3600)),
        ({"cron": "0 10 * * *"}, "10:00", BEFORE, AFTER),
        ({"cron": "* * * * * *"}, "10:00:31", "10:00:30.900", "10:00:31.100"),
    ],
    ids=lambda each: "-".join(map(str, each.values())) if isinstance(each, dict) else "",
)
def test_a_new_task_by_each_key(
    simulation: Started, keys: dict[str, Any], occurrence: str, begin: str, end: str
) -> None:
    sim = simulation(begin)
    with stepped(sim, "task_added", end):
        sim.initialize([entry(sim, **keys)])
    assert history(sim) == [("succeeded", "boot", utc(occurrence), utc(end))]


def test_an_interval_has_no_minute_and_runs_one_interval_later(simulation: Started) -> None:
    sim = simulation(BEFORE)
    with stepped(sim, "task_added"):
        sim.initialize([entry(sim, cron="@every 1m")])
    sim.advance_to("2024-01-01T10:02Z")
    assert [(row.reason, row.started_at) for row in sim.runs("t")] == [("due", utc("10:01:59.9"))]


def test_an_overridden_task(simulation: Started) -> None:
    sim = simulation("09:30:00")
    sim.initialize([("t", "0 0 1 1 *", sim.job(), FIVE_MINUTES)])
    sim.advance_to(f"2024-01-01T{BEFORE}Z")
    with stepped(sim, "task_overridden"):
        sim.initialize([("t", EVERY_MINUTE, sim.job(), FIVE_MINUTES)])
    assert history(sim) == HISTORY


def test_a_task_that_returns(simulation: Started) -> None:
    sim = simulation("09:59:00")
    sim.initialize([("t", EVERY_MINUTE, sim.job(), FIVE_MINUTES)])
    sim.initialize([])
    sim.advance_to(f"2024-01-01T{BEFORE}Z")
    with stepped(sim, "task_added"):
        sim.initialize([("t", EVERY_MINUTE, sim.job(), FIVE_MINUTES)])
    assert history(sim)[1:] == HISTORY
