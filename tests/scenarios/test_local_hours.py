"""Hours that the project's clocks show twice, or not at all, where it keeps no aware times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.test import override_settings

from django_declarative_cron.models import TaskRun

from .conftest import FIVE_MINUTES, Started

TEN = timedelta(minutes=10)
OFTEN = "0,10,20,30,40,50 * * * *"

# The change of the clocks lies an hour after each of them.
CHANGES = [
    ("America/New_York", "2026-03-08T06:00:00+00:00"),
    ("America/New_York", "2026-11-01T05:00:00+00:00"),
    ("Australia/Lord_Howe", "2026-04-04T14:00:00+00:00"),
]


@pytest.fixture(params=CHANGES, ids=str)
def begin(request: pytest.FixtureRequest) -> Iterator[datetime]:
    """Keep local times in a zone, an hour before its clocks change."""
    zone, at = request.param
    with override_settings(USE_TZ=False, TIME_ZONE=zone):
        yield datetime.fromisoformat(at)


def _every_ten(begin: datetime, end: datetime) -> list[datetime]:
    return [begin + TEN * number for number in range(1, (end - begin) // TEN + 1)]


@pytest.mark.slow
def test_nothing_runs_twice_or_not_at_all(simulation: Started, begin: datetime) -> None:
    """A task fails once, and leaders die before, in and after the hour of the change."""
    sim = simulation(begin.isoformat())
    failing = ("failing", "0 * * * *", sim.job(["fail", "ok"]), FIVE_MINUTES)
    tasks = [("steady", OFTEN, sim.job(), FIVE_MINUTES), failing]
    sim.initialize(tasks)
    for minute in (55, 65, 95, 125):
        sim.advance_to(begin + timedelta(minutes=minute), TEN)
        sim.crash()
        sim.initialize(tasks)
    end = begin + timedelta(minutes=140)
    sim.advance_to(end, TEN)
    starts = [at for at in sim.starts("steady") if at > begin]
    assert starts == _every_ten(begin, end)
    runs = TaskRun.objects.filter(task_name="steady").order_by("id")
    told = list(runs.values_list("scheduled_for", "outcome"))
    assert [at for at, _ in told if at > begin] == starts
    assert {outcome for _, outcome in told} == {"succeeded"}
    assert list(runs.order_by("started_at")) == list(runs)
    first, second = [at for at in sim.starts("failing") if at >= begin][:2]
    assert second - first == FIVE_MINUTES


def test_who_was_away_for_the_change_catches_up_once(simulation: Started, begin: datetime) -> None:
    sim = simulation(begin.isoformat())
    task = ("steady", OFTEN, sim.job(), FIVE_MINUTES)
    sim.initialize([task])
    sim.advance_to(begin + timedelta(minutes=45), TEN)
    sim.crash()
    back = begin + timedelta(minutes=115)
    sim.jump_to(back)
    sim.initialize([task])
    [missed] = TaskRun.objects.filter(outcome="missed")
    assert (missed.scheduled_from, missed.count) == (begin + 5 * TEN, 6)
    assert missed.scheduled_for == begin + 10 * TEN
    [late] = TaskRun.objects.filter(scheduled_for=begin + 11 * TEN)
    assert (late.started_at, late.outcome) == (back, "succeeded")
    assert sim.task("steady").next_run_at == begin + 12 * TEN
