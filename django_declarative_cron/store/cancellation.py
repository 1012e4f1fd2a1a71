"""Asking runs to end: written down by whoever asks, found by whoever calls them."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import cast
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.expressions import BaseExpression

from ..models import Outcome, ScheduledTask, TaskOverride, TaskRun
from ..signals import publish_on_commit
from . import database, outbox, overlaps, results
from .guard import LONG_AGO, Locked, Member, locked
from .operator_actions import Act
from .posted_tasks import outsider
from .results import Result


def request(using: str, deployment: str, runs: Collection[int], now: datetime) -> int:
    """Ask runs in progress to end.

    Returns:
        how many are in progress and had not been asked before.
    """
    with database.atomic(using):
        open_runs = TaskRun.objects.using(using).filter(
            scheduler__deployment=deployment,
            pk__in=list(runs),
            outcome=Outcome.RUNNING,
            cancel_requested_at=None,
        )
        # MySQL cannot change a table that it asks another one about in the same statement.
        found = list(open_runs.values_list("pk", flat=True))
        asked = TaskRun.objects.using(using).filter(pk__in=found, outcome=Outcome.RUNNING)
        return asked.update(cancel_requested_at=now)


def requested(member: Member) -> list[int]:
    """Return the runs of an instance that are to end."""
    with database.direct(member.using):
        return list(to_end(member.using, member.instance).values_list("pk", flat=True))


def to_end(using: str, instance: UUID) -> QuerySet[TaskRun]:
    """Return the rows of an instance's runs that were asked to end and have not."""
    # SQLite has no use for an index where it is asked for what is not null.
    return TaskRun.objects.using(using).filter(
        instance=instance, running_slot__isnull=False, cancel_requested_at__gt=LONG_AGO
    )


CANCELLABLE = (Outcome.RUNNING, Outcome.WAITING)
"""What a run is while it can be cancelled."""


class Effect(StrEnum):
    """What became of a run that somebody cancels."""

    ENDED = "ended"
    ASKED = "asked"
    NONE = "none"


def cancel(run: TaskRun, act: Act, database_time: BaseExpression | None = None) -> Effect:
    """End a run that waits; ask one in progress to end, for its callback or its runner.

    Returns:
        what became of it; nothing where it has ended, or was asked before.
    """
    return _cancel(outsider(database_time), run, act)


@database.again_after_conflict
def _cancel(member: Member, run: TaskRun, act: Act) -> Effect:
    if run.outcome != Outcome.WAITING:
        # What was seen running never waits again, and needs no lock to be asked.
        return _ask(member, run, act)
    with locked(member) as held:
        if held is None:
            return Effect.NONE
        if _take_out(held, member, run, act):
            return _record_end(member, run, act)
        if _end_behind(held, member, run, act):
            return Effect.ENDED
        return _ask(member, run, act)


def _take_out(held: Locked, member: Member, run: TaskRun, act: Act) -> bool:
    """Reserve a waiting run for nobody, so that its end is recorded like every other."""
    waiting = TaskRun.objects.using(member.using).filter(
        pk=run.pk, scheduler=held.row, outcome=Outcome.WAITING, waits_in__isnull=False
    )
    taken = waiting.update(
        outcome=Outcome.RUNNING,
        waits_in=None,
        reservation=uuid.uuid4(),
        reserved_until=held.database_now,
        cancel_requested_at=act.at,
    )
    if taken:
        _audit(member, run, act)
    return bool(taken)


def _record_end(member: Member, run: TaskRun, act: Act) -> Effect:
    # What no process of ours runs is recorded as what nobody's process ran.
    nobodys = replace(member, instance=cast(UUID, None))
    ended = Result(run.pk, run.task_name, act.at, succeeded=False, error="cancelled")
    recorded = results.record_here(nobodys, ended, act.at)
    publish_on_commit(recorded.events, member.using)
    # Where somebody holds its task's row, the leader ends it: its reservation is over.
    return Effect.ASKED if recorded.held else Effect.ENDED


def _end_behind(held: Locked, member: Member, run: TaskRun, act: Act) -> bool:
    """End a run that waits behind another one, under the lock: no leader begins it meanwhile."""
    told = overlaps.drop_one_waiting(held, member, run, act.at)
    if not told:
        return False
    _audit(member, run, act)
    tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row, name=run.task_name)
    publish_on_commit(outbox.tell(held, member.using, told, tasks), member.using)
    return True


def _ask(member: Member, run: TaskRun, act: Act) -> Effect:
    with database.atomic(member.using):
        if not request(member.using, member.deployment, [run.pk], act.at):
            return Effect.NONE
        _audit(member, run, act)
    return Effect.ASKED


def _audit(member: Member, run: TaskRun, act: Act) -> None:
    told = TaskOverride(
        scheduler_id=run.scheduler_id,
        task_name=run.task_name,
        kind=TaskOverride.Kind.CANCEL,
        note=act.note,
        author=act.author[:255],
        author_key=act.author_key[:255],
        created_at=act.at,
        ended_at=act.at,
    )
    database.insert(member.using, [told])
