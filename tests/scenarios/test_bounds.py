"""The bounds of 001 and 003: what a poll costs in statements, and that it keeps no memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime.executor import BATCH
from django_declarative_cron.testing import Simulation

from .conftest import task
from .observed import utc

pytestmark = pytest.mark.django_db


ELEVEN = "0 11 * * *"


def _statements(done: Callable[[], None]) -> int:
    with CaptureQueriesContext(connection) as captured:
        done()
    return len(captured)


def _at_eleven(due: int, idle: int = 0, duration: timedelta = timedelta(0)) -> tuple[Any, int]:
    """Start what is due at eleven; return the simulation and the number of statements."""
    TaskRun.objects.all().delete()
    sim = Simulation(utc("10:00:30"))
    busy = (task(f"due-{number}", ELEVEN, lasts=duration) for number in range(due))
    sim.initialize([*busy, *(task(f"idle-{number}", "0 0 1 7 *") for number in range(idle))])
    statements = _statements(lambda: sim.jump_to(utc("11:00")))
    assert TaskRun.objects.count() == due
    return sim, statements


def _handful(few: int, rows: int) -> int:
    """Allow more for each batch of results, and where the database limits parameters."""
    limit = connection.features.max_query_params
    statements = 0 if limit is None else 6 * (rows * 40 // limit + 1)
    return few + statements + 8 * (rows // BATCH)


@pytest.mark.requirement("001 Real-time bounds/2")
def test_a_poll_costs_by_what_is_due_and_not_by_what_is_registered() -> None:
    assert _at_eleven(due=3, idle=10)[1] == _at_eleven(due=3, idle=2000)[1]


@pytest.mark.requirement("001 Real-time bounds/3")
@pytest.mark.slow
def test_many_due_tasks_start_in_a_handful_of_statements() -> None:
    few, many = _at_eleven(due=10)[1], _at_eleven(due=900)[1]
    assert few < 40
    assert many <= _handful(few, 900)


@pytest.mark.requirement("001 Real-time bounds/5", "001 Real-time bounds/6")
@pytest.mark.slow
def test_interrupted_runs_restart_in_a_handful_of_statements() -> None:
    def restart(tasks: int) -> int:
        sim, _ = _at_eleven(due=tasks, duration=timedelta(hours=1))
        sim.crash()
        due = [task(f"due-{number}", ELEVEN) for number in range(tasks)]
        statements = _statements(lambda: sim.initialize(due))
        restarted = TaskRun.objects.filter(reason="orphaned", outcome="succeeded")
        assert restarted.count() == tasks
        return statements

    few, many = restart(10), restart(500)
    assert few < 60
    assert many <= _handful(few, 500)


@pytest.mark.requirement("003 Resource Limits/3")
@pytest.mark.slow
def test_polling_on_and_on_keeps_no_memory() -> None:
    sim = Simulation(utc("10:00:30"))
    sim.initialize([task("yearly", "0 0 1 1 *")])

    def poll(times: int) -> int:
        for _ in range(times):
            sim.clock.advance(sim.now + timedelta(minutes=1))
            sim.poll()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        # Caches fill once, at any time; what is kept of each poll shows in every span.
        taken = [poll(360) for _ in range(4)]
        assert min(after - before for before, after in pairwise(taken)) < 10 * 1024
    finally:
        tracemalloc.stop()
