"""What the columns that people query say (AD), and who every record belongs to."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from django_declarative_cron.testing import Simulation

from .conftest import Started, utc

HOUR = timedelta(hours=1)


def _dates(sim: Simulation) -> tuple[datetime | None, datetime | None, datetime | None]:
    task = sim.task("t")
    return task.last_attempt_at, task.last_success_at, task.pending_retry_until


@pytest.mark.requirement("001 Timestamp Management/2")
def test_ad01_a_task_that_never_ran_has_three_empty_columns(simulation: Started) -> None:
    sim = simulation("09:30:00")
    sim.initialize([("t", "0 10 * * *", sim.job(), HOUR)])
    assert _dates(sim) == (None, None, None)
    assert sim.task("t").registered_at == utc("09:30")


@pytest.mark.requirement("001 Timestamp Management/1")
def test_ad02_ad04_success_failure_and_a_retry_that_succeeds(simulation: Started) -> None:
    sim = simulation("10:00:00")
    job = sim.job(["ok", "fail", "ok"], duration=timedelta(minutes=2))
    sim.initialize([("t", "0 10,11 * * *", job, timedelta(minutes=5))])
    sim.advance_to(utc("10:30"))
    assert _dates(sim) == (utc("10:00"), utc("10:02"), None)
    job.duration = timedelta(minutes=1)
    sim.advance_to(utc("11:03"))
    assert _dates(sim) == (utc("11:00"), utc("10:02"), utc("11:06"))
    sim.advance_to(utc("11:30"))
    assert _dates(sim) == (utc("11:06"), utc("11:07"), None)
