"""What 003 asks for under Security & Performance, where nothing else shows it."""

from __future__ import annotations

import gc
import logging
import tracemalloc
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Simulation

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


@pytest.fixture
def sim() -> Simulation:
    sim = Simulation(start="2024-01-01T10:00:30Z")
    sim.initialize([("yearly", "0 0 1 1 *", sim.job(), MINUTE)])
    return sim


@pytest.mark.requirement("003 Error Handling/2")
def test_an_act_is_logged_with_its_author(
    sim: Simulation,
    caplog: pytest.LogCaptureFixture,
    django_capture_on_commit_callbacks: Callable[..., AbstractContextManager[Any]],
) -> None:
    caplog.set_level(logging.DEBUG, logger="django_declarative_cron")
    with django_capture_on_commit_callbacks(execute=True):
        operator_actions.pause(["yearly"], Act(author="ada", at=sim.now, note="inventory"))
    [record] = [each for each in caplog.records if getattr(each, "event", "") == "TaskPaused"]
    assert (record.taskName, record.author, record.note) == ("yearly", "ada", "inventory")  # type: ignore[attr-defined]


@pytest.mark.requirement("003 Resource Limits/3")
@pytest.mark.slow
def test_polling_on_and_on_keeps_no_memory(sim: Simulation) -> None:
    def poll(times: int) -> int:
        for _ in range(times):
            sim.clock.advance(sim.now + MINUTE)
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
