"""Acts and runs from the command line on rows that somebody else holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from django_declarative_cron.models import TaskOverride, TaskRun
from django_declarative_cron.testing import Simulation

from ..store.conftest import Stranger, impatient, stranger
from .conftest import DELAY, START, Cron

__all__ = ["impatient", "stranger"]

pytestmark = [
    pytest.mark.usefixtures("impatient"),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the file, not rows"),
]


@pytest.mark.parametrize("word", ["pause", "resume", "run", "clear-retry"])
def test_a_row_that_is_held_is_named_and_nothing_is_changed(
    transactional_db: None,
    cron: Cron,
    declare: Callable[..., list[Any]],
    stranger: Stranger,
    word: str,
) -> None:
    sim = Simulation(start=START)
    declare(a="0 * * * *")
    sim.initialize([("a", "0 * * * *", sim.job(outcomes=["fail"]), DELAY)])
    sim.advance_to("2024-01-01T11:00:10Z")
    if word == "resume":
        assert cron("pause", "a", clock=sim.clock).code == 0
    before = TaskOverride.objects.count(), TaskRun.objects.count(), sim.task("a").paused_since
    stranger.hold("scheduledtask", name="a")
    answer = cron(word, "a", clock=sim.clock)
    stranger.let_go()
    assert (answer.code, answer.err) == (
        1,
        "Nothing was changed: rows of task 'a' are locked by another transaction,"
        " which did not end within 1 s; end it, then try again.",
    )
    after = TaskOverride.objects.count(), TaskRun.objects.count(), sim.task("a").paused_since
    assert after == before
