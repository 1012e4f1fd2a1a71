"""Tasks that come at once: decided once where they are alike, and each for itself elsewhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron import conf
from django_declarative_cron.models import ScheduledTask, SchedulerState, TaskOverride, TaskRun
from django_declarative_cron.store import adding

from .conftest import Deployment, nothing

pytestmark = pytest.mark.django_db

FIVE = timedelta(minutes=5)
NOW = datetime(2026, 12, 1, 12, 0, 30, tzinfo=UTC)
SELDOM, ALWAYS = "0 0 29 2 *", "* * * * *"
TASKS = (("a", SELDOM), ("b", SELDOM), ("ran", SELDOM), ("paused", SELDOM), ("c", SELDOM))
OF_ITS_DEPLOYMENT = ("id", "scheduler_id", "scheduler_identifier", "epoch")


def _registered() -> dict[str, dict[str, Any]]:
    """Register tasks: one runs, one is paused; of those due in this minute, one has succeeded."""
    SchedulerState.objects.all().delete()
    made = Deployment(0)
    made.now = NOW
    made.initialize()
    state = SchedulerState.objects.get()
    run = {"scheduled_for": NOW - FIVE, "outcome": "running", "running_slot": "ran"}
    TaskRun.objects.create(
        scheduler=state, task_name="ran", instance_id=made.member.instance, **run
    )
    done = {"scheduled_for": NOW, "started_at": NOW, "outcome": "succeeded"}
    TaskRun.objects.create(scheduler=state, task_name="c-due", **done)
    pause = {"kind": TaskOverride.Kind.PAUSE, "author": "somebody", "until": NOW + FIVE}
    TaskOverride.objects.create(scheduler=state, task_name="paused", created_at=NOW, **pause)
    tasks = [*TASKS, *((f"{name}-due", ALWAYS) for name, _ in TASKS)]
    made.declarations = conf.declarations([(name, cron, nothing, FIVE) for name, cron in tasks])
    made.member = replace(made.member, digest="another")
    made.initialize()
    return {row["name"]: row for row in ScheduledTask.objects.values()}


@pytest.mark.parametrize(("limit", "least"), [("_MOST_ALIKE", 0), ("_ASKED_AT_ONCE", 3)])
def test_what_is_decided_once_is_what_each_would_be_decided(
    monkeypatch: pytest.MonkeyPatch, limit: str, least: int
) -> None:
    together = _registered()
    assert len({row["id"] for row in together.values()}) == len(together) == 2 * len(TASKS)
    assert {name for name, row in together.items() if row["running_run"]} == {"ran"}
    assert {name for name, row in together.items() if row["paused_since"]} == {"paused"}
    due = {name for name, row in together.items() if row["boot_at"]}
    assert due == {f"{name}-due" for name, _ in TASKS if name != "c"}
    monkeypatch.setattr(adding, limit, least)
    alone = _registered()
    for rows in (together, alone):
        for row in rows.values():
            row["running_run"] = bool(row["running_run"])
            for key in OF_ITS_DEPLOYMENT:
                del row[key]
    assert together == alone
