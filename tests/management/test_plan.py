"""``cron plan``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.testing import Simulation

from ..timezones import PROJECT
from .conftest import DELAY, HERE, START, Cron

Declare = Callable[..., list[Any]]


def _task(
    name: str, cron: str = "0 7 * * *", job: str = "nothing", delay: timedelta = DELAY
) -> Any:
    return (name, cron, f"{HERE}.{job}", delay)


@pytest.fixture
def changed(db: None, declare: Declare) -> Simulation:
    """A registered set, and another one in the settings."""
    sim = Simulation(START, time_zone=PROJECT)
    registered = [_task("same"), _task("moved"), _task("rewired"), _task("gone")]
    sim.initialize(declare(*registered))
    declare(
        _task("same"),
        _task("moved", "0 8 * * *", delay=timedelta(seconds=90)),
        _task("rewired", job="remember"),
        _task("fresh", "15 6 * * 1"),
    )
    return sim


def test_the_table(cron: Cron, changed: Simulation) -> None:
    answer = cron("plan", clock=changed.clock)
    assert answer.code == 0
    assert answer.lines == [
        "CHANGE        TASK     DETAILS",
        f"+ new         fresh    15 6 * * 1  {PROJECT}",
        "~ overridden  moved    cron: 0 7 * * * → 0 8 * * *, retry_delay: 5 min → 1 min 30 s",
        "- orphaned    gone",
        f"= preserved   rewired  0 7 * * *  {PROJECT}, changed: callback",
        f"= preserved   same     0 7 * * *  {PROJECT}",
    ]
    assert answer.err.splitlines() == [
        "1 new, 1 overridden, 2 preserved, 1 orphaned.",
        "Nothing was written: `python manage.py runscheduler` makes the changes.",
        "+ new: state begins; only the current minute may be due",
        "~ overridden: state begins anew; only the current minute may be due",
        "- orphaned: row is removed; its history and audit log stay",
        "= preserved: state is kept",
    ]


def test_what_is_orphaned_is_told_to_programs(cron: Cron, changed: Simulation) -> None:
    assert cron("plan", "--format", "json", clock=changed.clock).data["orphaned"] == [
        {"name": "gone"}
    ]


def test_it_does_what_it_said_when_a_scheduler_starts(
    cron: Cron, changed: Simulation, settings: Any
) -> None:
    changed.initialize(settings.SCHEDULED_TASKS)
    answer = cron("plan", clock=changed.clock)
    assert answer.err.splitlines()[:2] == [
        "0 new, 0 overridden, 4 preserved, 0 orphaned.",
        "Nothing would change.",
    ]


@pytest.mark.parametrize("form", ["table", "json"])
def test_it_writes_nothing(form: str, cron: Cron, changed: Simulation) -> None:
    with CaptureQueriesContext(connection) as queries:
        cron("plan", "--format", form, clock=changed.clock)
    assert queries.captured_queries
    for query in queries.captured_queries:
        assert query["sql"].lstrip().startswith("SELECT"), query["sql"]


def test_before_any_scheduler_everything_is_new(
    cron: Cron, declare: Declare, sim: Simulation
) -> None:
    declare(_task("fresh"))
    assert cron("plan", clock=sim.clock).err.startswith("1 new, 0 overridden")


def test_nothing_declared_and_nothing_stored(cron: Cron, declare: Declare, db: None) -> None:
    declare()
    assert cron("plan").err.splitlines() == [
        "0 new, 0 overridden, 0 preserved, 0 orphaned.",
        "Nothing would change.",
    ]


def test_refused_settings_are_told_with_all_mistakes(
    cron: Cron, declare: Declare, db: None
) -> None:
    declare(_task("a", "*/5 * * * *"), _task("b", job="nothin"))
    answer = cron("plan")
    assert (answer.code, answer.out) == (2, "")
    first, *mistakes = answer.err.splitlines()
    assert first == "The settings are refused."
    assert [line.partition(": ")[0] for line in mistakes] == [
        "SCHEDULED_TASKS[0] 'a'",
        "SCHEDULED_TASKS[1] 'b'",
    ]
    assert "`nothing` exists" in mistakes[1]


def test_refused_options_are_told(cron: Cron, settings: Any, db: None) -> None:
    settings.DECLARATIVE_CRON = {"DEPLOYMEN": "x"}
    answer = cron("plan")
    assert answer.code == 2
    assert "did you mean `DEPLOYMENT`?" in answer.err


def test_another_deployment_has_its_own_plan(
    cron: Cron, changed: Simulation, settings: Any
) -> None:
    settings.DECLARATIVE_CRON = {"DEPLOYMENT": "other"}
    assert cron("plan", clock=changed.clock).err.startswith("4 new")
