"""Libraries that move the clock: each works around a schedule, and within a simulation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.utils import timezone
from freezegun import freeze_time

from django_declarative_cron.testing import Simulation, assert_fires, assert_schedule_snapshot

NEW_YEAR = datetime(2027, 1, 1, 6, 30, tzinfo=UTC)
CALLBACK = "tests.callables.jobs.send_mail"
DAILY = [("daily", "0 7 * * *", CALLBACK, timedelta(minutes=5))]

Travel = Callable[[datetime], AbstractContextManager[Any]]


@pytest.fixture(
    params=[freeze_time, lambda at: time_machine.travel(at, tick=False)],
    ids=["freezegun", "time-machine"],
)
def travel(request: pytest.FixtureRequest) -> Travel:
    """Give what moves the clock."""
    return request.param


@pytest.mark.django_db
def test_now_is_where_the_clock_is(travel: Travel, tmp_path: Path) -> None:
    path, out = tmp_path / "schedule.txt", StringIO()
    with travel(NEW_YEAR):
        assert_schedule_snapshot(path, rewrite=True, tasks=DAILY)
        call_command("cron", "next", "0 7 * * *", "-n", "1", stdout=out)
        # What is declared does not depend on the day on which it is asked about.
        assert_fires(
            "daily", between=("2027-03-22", "2027-03-23"), at=["2027-03-22 07:00"], tasks=DAILY
        )
    assert "# From 2027-01-01 up to 2028-01-01.\n" in path.read_text()
    assert "Fri 2027-01-01 07:00" in out.getvalue()
    assert "in 30 min" in out.getvalue()


@pytest.mark.django_db
def test_a_simulation_goes_its_own_way_under_a_frozen_clock(travel: Travel) -> None:
    with travel(datetime(2020, 2, 2, tzinfo=UTC)):
        sim = Simulation("2027-01-01T06:30Z")
        sim.initialize(DAILY)
        sim.advance_to("2027-01-01T07:30Z")
        assert [f"{at:%Y %H:%M}" for at in sim.starts("daily")] == ["2027 07:00"]


@pytest.mark.real_clock
@pytest.mark.django_db
def test_callbacks_of_a_simulation_may_see_its_time(travel: Travel) -> None:
    seen = []
    sim = Simulation(NEW_YEAR, travel=travel)
    tasks = [("a", "0 * * * *", lambda: seen.append(timezone.now()), timedelta(minutes=5))]
    sim.initialize(tasks)
    sim.advance_to(NEW_YEAR + timedelta(hours=2))
    seven = NEW_YEAR + timedelta(minutes=30)
    assert [timezone.make_aware(at, UTC) if at.tzinfo is None else at for at in seen] == [
        seven,
        seven + timedelta(hours=1),
    ]
    assert abs(timezone.now().timestamp() - NEW_YEAR.timestamp()) > 3600
