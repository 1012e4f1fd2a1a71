"""Days on which the wall clock moves, lived through by a running scheduler."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.models import SchedulerState, TaskRun
from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, Started, utc

QUARTER = timedelta(minutes=15)
SECOND_PASS = [f"06:{minute}0" for minute in range(6)]


def _hands_over(sim: Simulation) -> None:
    """Let whoever leads go, as in a deploy."""
    leader = SchedulerState.objects.get().leader_id
    (leading,) = [each for each in (sim[0], sim[1]) if each.scheduler.id == leader]  # type: ignore[union-attr]
    leading.stop()


@pytest.mark.parametrize(
    ("fold", "minutes"),
    [
        ("first", ["05:40", "05:50", "07:00", "07:10"]),
        ("both", ["05:40", "05:50", *SECOND_PASS, "07:00", "07:10"]),
    ],
)
def test_p02_a_repeated_hour_runs_once_or_twice_as_declared(
    simulation: Started, fold: str, minutes: list[str]
) -> None:
    sim = simulation("2026-11-01T05:31:00Z")
    task = {"name": "t", "cron": "*/10 * * * *", "callback": sim.job(), "fold": fold}
    sim.initialize([{**task, "timezone": "America/New_York", "retry_delay": FIVE_MINUTES}])
    sim.advance_to("2026-11-01T07:10:00Z", at_least_every=QUARTER)
    assert sim.starts("t") == [utc(f"2026-11-01T{each}") for each in minutes]
    # The second pass is no occurrence where only the first counts: nothing was missed.
    assert sim.task("t").run_count == TaskRun.objects.count() == len(minutes)


@pytest.mark.parametrize("moment", ["05:29:59", "06:29:00", "06:30:00"])
def test_p04_the_lead_that_moves_in_a_repeated_hour_runs_nothing_twice(
    simulation: Started, moment: str
) -> None:
    sim = simulation("2026-10-31T05:45:00Z", instances=2, time_zone="America/New_York")
    sim.initialize([("t", "30 1 * * *", sim.job(), FIVE_MINUTES)])
    sim.advance_to(f"2026-11-01T{moment}Z", at_least_every=timedelta(hours=12))
    _hands_over(sim)
    sim.advance_to("2026-11-02T06:30:00Z", at_least_every=timedelta(hours=1))
    assert sim.starts("t") == [utc("2026-11-01T05:30"), utc("2026-11-02T06:30")]


def test_p08_the_others_run_on_time_where_one_local_time_is_left_out(simulation: Started) -> None:
    sim = simulation("2027-03-14T06:30:30Z", time_zone="America/New_York")
    others = [f"t{n}" for n in range(49)]
    sim.initialize(
        [
            ("lost", "30 2 * * *", sim.job(), FIVE_MINUTES),
            *((name, "0,10 * * * *", sim.job(), FIVE_MINUTES) for name in others),
        ]
    )
    sim.advance_to("2027-03-14T07:15:00Z", at_least_every=QUARTER)
    on_time = [utc("2027-03-14T07:00"), utc("2027-03-14T07:10")]
    assert [sim.starts(name) for name in others] == [on_time] * 49
    (lost,) = sim.runs("lost")
    assert (lost.outcome, lost.reason) == ("skipped", "dst_skip")
    assert lost.detail == {"local_time": "2027-03-14T02:30:00"}
    assert sim.task("lost").next_run_at == utc("2027-03-15T06:30")


@pytest.mark.parametrize("use_tz", [True, False])
def test_p16_one_run_a_local_day_whatever_times_the_project_keeps(
    simulation: Started, settings: Any, use_tz: bool
) -> None:
    settings.USE_TZ, settings.TIME_ZONE = use_tz, "Asia/Shanghai"
    sim = simulation("2026-12-01T01:00:00Z", time_zone=settings.TIME_ZONE)
    sim.initialize([("t", "30 17 * * *", sim.job(), FIVE_MINUTES)])
    for day in range(1, 15):
        sim.advance_to(f"2026-12-{day:02}T23:30:00Z", at_least_every=timedelta(hours=8))
    expected = [datetime.fromisoformat(f"2026-12-{day:02}T17:30:00+08:00") for day in range(1, 15)]
    assert [run.scheduled_for for run in sim.runs("t")] == expected
