"""The lines with which a scheduler says that it is at work; test_golden.py has them whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError

from django_declarative_cron import conf
from django_declarative_cron.management.cli import banner
from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.store import database, operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Simulation

from ..timezones import local_time
from .conftest import DELAY, START

pytestmark = pytest.mark.django_db


def said(sim: Simulation) -> list[str]:
    assert sim[0].scheduler is not None
    return list(banner.lines(sim[0].scheduler, conf.options(), database.alias(), None))


@pytest.fixture
def sim() -> Simulation:
    """Two tasks, the first of them at eleven."""
    made = Simulation(start=START)
    job = made.job()
    made.initialize([("a", "0 * * * *", job, DELAY), ("b", "0 12 * * *", job, DELAY)])
    return made


def test_without_a_port_there_are_no_probes(sim: Simulation) -> None:
    assert said(sim)[4] == "  probes    none"


def test_what_is_paused_is_not_next(sim: Simulation) -> None:
    operator_actions.pause(["a"], Act(author="ada", at=sim.now))
    assert said(sim)[2].endswith(f"the next at {local_time('2024-01-01 12:00')}")
    operator_actions.pause(["b"], Act(author="ada", at=sim.now))
    assert said(sim)[2] == "  tasks     2 tasks"


def test_no_schedule_is_worked_out_for_it(
    sim: Simulation, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many tasks there are, it is one query that says which is next."""
    monkeypatch.setattr("django_declarative_cron.core.schedule.Schedule.next_after", pytest.fail)
    with django_assert_num_queries(1):
        assert f"the next at {local_time('2024-01-01 11:00')}" in said(sim)[2]


def test_a_database_that_refuses_does_not_end_the_scheduler(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise DatabaseError("gone")

    rows = SimpleNamespace(using=lambda alias: rows, filter=lambda **_: rows, aggregate=refuse)
    monkeypatch.setattr(ScheduledTask, "objects", rows)
    assert said(sim)[2] == "  tasks     2 tasks"


def test_tasks_of_other_deployments_are_not_told(sim: Simulation) -> None:
    before = said(sim)[2]
    theirs = ScheduledTask.objects.get(name="a")
    other = type(theirs.scheduler).objects.create(deployment="other")
    theirs.pk = None
    theirs.scheduler, theirs.next_run_at = other, datetime(2024, 1, 1, tzinfo=UTC) - timedelta(1)
    theirs.save()
    assert said(sim)[2] == before
