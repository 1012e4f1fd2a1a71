"""Somebody cancels a run: one that waits ends, one that runs is asked to end; both are audited."""

from __future__ import annotations

import uuid
from dataclasses import replace
from enum import StrEnum
from typing import cast
from uuid import UUID

from django.db.models.expressions import BaseExpression

from ..models import Outcome, ScheduledTask, TaskOverride, TaskRun
from ..signals import publish_on_commit
from . import bulk, cancelling, database, outbox, overlaps, results
from .endings import Result
from .guard import Locked, Member, locked
from .mending import mending
from .overrides import Act
from .posting import outsider

CANCELLABLE = (Outcome.RUNNING, Outcome.WAITING)
"""What a run is while it can be cancelled."""


class Effect(StrEnum):
    """What became of a run that somebody cancels."""

    ENDED = "ended"
    ASKED = "asked"
    NONE = "none"


def cancel(run: TaskRun, act: Act, database_time: BaseExpression | None = None) -> Effect:
    """End a run that waits; ask one in progress to end, for its callback or its runner.

    Args:
        run: its row.
        act: who, when, why.
        database_time: expression of the database's time, unless it is the database's own.

    Returns:
        what became of it; nothing where it has ended, or was asked before.
    """
    member = outsider(database_time)
    return mending(member.using, member.deployment, lambda: _cancel(member, run, act))


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
        if not cancelling.request(member.using, member.deployment, [run.pk], act.at):
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
    bulk.insert(member.using, [told])
