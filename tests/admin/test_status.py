"""One word for each task, the same in the column and in the filter."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from django_declarative_cron.admin.badges import STATUS_WORDS
from django_declarative_cron.core.overlap import POLICIES
from django_declarative_cron.core.state import TaskState
from django_declarative_cron.core.status import Status, status_of
from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.store.queries import next_start_of
from django_declarative_cron.store.rows import state_of
from django_declarative_cron.store.status import next_start_at, status_query

from . import rows
from .rows import NOW

AGO = NOW - timedelta(minutes=2)
AHEAD = NOW + timedelta(minutes=2)


@pytest.mark.requirement("001 Task State Model/1")
@pytest.mark.parametrize(
    ("state", "around", "word"),
    [
        ({}, {}, Status.ACTIVE),
        ({}, {"next_run_at": None}, Status.ACTIVE),
        ({}, {"next_run_at": NOW - timedelta(seconds=60)}, Status.ACTIVE),
        ({}, {"next_run_at": NOW - timedelta(seconds=61)}, Status.OVERDUE),
        ({"running": True}, {"next_run_at": AGO}, Status.RUNNING),
        ({"pending_retry_until": AHEAD}, {}, Status.RETRYING),
        ({"pending_retry_until": AGO}, {}, Status.OVERDUE),
        ({"run_requested_at": AGO}, {}, Status.OVERDUE),
        ({"paused_since": AGO}, {"next_run_at": AGO}, Status.PAUSED),
        ({"paused_since": AGO, "paused_until": AHEAD}, {}, Status.PAUSED_UNTIL),
        ({"paused_since": AGO, "paused_until": NOW}, {}, Status.ACTIVE),
        ({"paused_since": AGO, "paused_until": NOW}, {"next_run_at": AGO}, Status.OVERDUE),
        ({}, {"enabled": False}, Status.DISABLED),
        ({"paused_since": AGO, "paused_until": AHEAD}, {"enabled": False}, Status.DISABLED),
        ({"running": True}, {"enabled": False}, Status.RUNNING),
        ({"running": True}, {"is_gone": True}, Status.INTERRUPTED),
        ({"running": True}, {"broken": True}, Status.BROKEN),
        ({"paused_since": AGO}, {"broken": True}, Status.BROKEN),
    ],
)
def test_the_most_urgent_word_is_said(
    state: dict[str, Any], around: dict[str, Any], word: Status
) -> None:
    found = status_of(
        TaskState(name="a", registered_at=NOW - timedelta(days=1), **state),
        NOW,
        **{"next_run_at": AHEAD, **around},
    )
    assert found is word


def test_each_word_has_a_shape_of_its_own() -> None:
    assert len({status.symbol for status in Status}) == len(Status) == len(STATUS_WORDS)


def _tasks_of_every_kind(axes: dict[str, tuple[Any, ...]]) -> None:
    first = rows.task("t")
    ScheduledTask.objects.bulk_create(
        ScheduledTask(
            scheduler=first.scheduler,
            scheduler_identifier=first.scheduler_identifier,
            name=f"t{number}",
            cron=first.cron,
            timezone="UTC",
            retry_delay=first.retry_delay,
            registered_at=first.registered_at,
            **dict(zip(axes, values, strict=True)),
        )
        for number, values in enumerate(product(*axes.values()))
    )


@pytest.mark.django_db
def test_the_next_start_of_a_query_is_that_of_the_state() -> None:
    _tasks_of_every_kind(
        {
            "paused_since": (None, AGO),
            "paused_until": (None, AGO, AHEAD),
            "pending_retry_until": (None, AGO, AHEAD),
            "next_run_at": (None, AGO, AHEAD),
            "declaration": ({}, *({"overlap_policy": policy} for policy in POLICIES)),
        }
    )
    for task in ScheduledTask.objects.annotate(found=next_start_at()):
        start = next_start_of(task)
        assert task.found == (None if start is None else start.at), task.name


@pytest.mark.django_db
def test_the_filter_agrees_with_the_column_on_every_state() -> None:
    axes: dict[str, tuple[Any, ...]] = {
        "broken_reason": ("", "no module"),
        "running_run": (None, 7),
        "enabled": (True, False),
        "paused_since": (None, AGO),
        "paused_until": (None, AGO, AHEAD),
        "pending_retry_until": (None, AGO, AHEAD),
        "next_run_at": (None, AGO, AHEAD),
        "run_requested_at": (None, AGO),
    }
    _tasks_of_every_kind(axes)
    said = {
        status: set(ScheduledTask.objects.filter(status_query(status, NOW)).values_list("name"))
        for status in Status
    }
    assert sum(len(names) for names in said.values()) == ScheduledTask.objects.count()
    for task in ScheduledTask.objects.all():
        word = status_of(
            state_of(task),
            NOW,
            next_run_at=task.next_run_at,
            broken=bool(task.broken_reason),
            enabled=task.enabled,
        )
        assert (task.name,) in said[word], (task.name, word)
