"""Occurrences that were never to run, as acts: the theory, which knows of none, looks away.

A task leaves its sight just before the first of them, and comes back after the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from ...models import Origin, ScheduledTask, SchedulerState, TaskRun
from .. import rows
from .values import Act

REASONS = ("excluded", "skip_next", "too_late")

_PAGE = 2000

_BEFORE = timedelta(microseconds=2)
"""A task that comes back for an occurrence does so a microsecond before it."""


def acts(
    using: str, state: SchedulerState, begins: datetime | None, until: datetime
) -> Iterator[Act]:
    """Yield one act for each row, and for each day that has none yet.

    Args:
        using: database alias.
        state: of the deployment.
        begins: where the history begins.
        until: where it ends.
    """
    yield from _told(using, state, begins)
    yield from _untold(using, state, until)


def _told(using: str, state: SchedulerState, begins: datetime | None) -> Iterator[Act]:
    runs = TaskRun.objects.using(using).filter(
        scheduler=state, reason__in=REASONS, origin=Origin.SETTINGS
    )
    if begins is not None:
        runs = runs.filter(Q(finished_at__gte=begins) | Q(scheduled_for__gte=begins))
    columns = ("pk", "task_name", "scheduled_from", "scheduled_for", "reason", "finished_at")
    newest = 0
    while page := runs.filter(pk__gt=newest).order_by("pk").values_list(*columns)[:_PAGE]:
        for newest, name, first, last, reason, told in page:  # noqa: B007 - where the next begins
            ends = max(last, told) if reason == "too_late" and told is not None else last
            yield _act(name, first or last, ends)


def _untold(using: str, state: SchedulerState, until: datetime) -> Iterator[Act]:
    """Tell of days that are not over, of which no row tells yet."""
    tasks: Any = ScheduledTask.objects.using(using).filter(scheduler=state, origin=Origin.SETTINGS)
    for task in tasks.filter(declaration__has_key="exclude"):
        try:
            schedule, mark = rows.schedule_of(task), rows.state_of(task).mark
            for day in schedule.excluded_between(mark, until):
                yield _act(task.name, day.first, day.last)
        except rows.DAMAGE:
            continue


def _act(name: str, first: datetime, last: datetime) -> Act:
    return Act(first - _BEFORE, name, "left_out", last)
