"""Runs that a person starts, now or for the past, and runs that a person cancels."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import cast
from uuid import UUID

from django.db.models import Max
from django.db.models.expressions import BaseExpression

from ..conf import options
from ..core import events
from ..core.decide import BACKFILL, backfill, settle, start_manually
from ..core.declarations.declaration import Declaration
from ..core.decoding import StoredTerms
from ..core.state import Story
from ..exceptions import TaskTryDeserializeError
from ..models import Outcome, ScheduledTask, TaskOverride, TaskRun
from ..signals import publish_on_commit
from . import (
    active_runs,
    database,
    liveness,
    operator_actions,
    outbox,
    recovery,
    results,
    rows,
)
from .active_runs import Claim, Started
from .database import naming_what_is_held
from .guard import LONG_AGO, Candidacy, LockedDeployment, Member, locked, outsider
from .liveness import Process
from .operator_actions import Act
from .results import Result
from .rows import NotRegisteredError, UnreadableRowError


class AlreadyRunningError(RuntimeError):
    """Raised if a run of a task is in progress; it has the row of that run and its instance."""

    def __init__(self, run: TaskRun) -> None:
        super().__init__(f"run {run.pk} of {run.task_name!r} is in progress")
        self.run = run


@dataclass(frozen=True, slots=True)
class CommittedStart:
    """A committed start: the run to call now, and the events in causal order."""

    claim: Claim
    events: tuple[events.Event, ...]


@database.again_after_conflict
def start_now(
    member: Member, process: Process, declaration: Declaration, act: Act
) -> CommittedStart:
    """Start a task now, beside its schedule; the instance need not lead, and comes with it.

    Under ``cancel_previous``, the runs in progress are asked to end first.

    Raises:
        NotRegisteredError: the task has no row.
        UnreadableRowError: its row is damaged.
        AlreadyRunningError: its run is in progress, here or elsewhere.
        django.db.Error: nothing was committed, nothing may be called.
    """
    with naming_what_is_held(member.using, member.deployment), locked(member) as held:
        if held is None:
            raise NotRegisteredError(declaration.name)
        row = free_row(held, declaration.name)
        liveness.register(held, process)
        return _start_now(held, row, declaration, act)


def free_row(held: LockedDeployment, name: str) -> ScheduledTask:
    """Return the row of a task that no run of its own keeps from starting.

    Raises:
        NotRegisteredError: the task has no row.
        AlreadyRunningError: its run is in progress.
    """
    row = database.current(held.using, held.tasks.filter(name=name)).first()
    if row is None:
        raise NotRegisteredError(name)
    busy = database.current(held.using, held.runs.filter(running_slot=name)).first()
    if busy is not None:
        raise AlreadyRunningError(busy)
    return row


def _start_now(
    held: LockedDeployment, row: ScheduledTask, declaration: Declaration, act: Act
) -> CommittedStart:
    state, policy = rows.state_of(row), _terms(row).overlap_policy
    active = active_runs.active_runs(held, [row]).get(row.name, [])
    asked = events.TaskRunRequested(
        at=act.at, task_name=state.name, author=act.author, note=act.note
    )
    # The start closes the request again: the audit log has the author and the time of the answer.
    operator_actions.audit(held, [row], act, TaskOverride.Kind.RUN)
    story = start_manually(Story(state).then(asked), act.at, policy, active)
    return _write(held, row, declaration, story, act.at)


def _terms(row: ScheduledTask) -> StoredTerms | Declaration:
    try:
        return rows.terms_of(row)
    except TaskTryDeserializeError as damage:
        raise UnreadableRowError(rows.reason_of(damage)) from damage


def _write(
    held: LockedDeployment,
    row: ScheduledTask,
    declaration: Declaration,
    story: Story,
    now: datetime,
) -> CommittedStart:
    """Write the start that a story ends with."""
    terms = _terms(row)
    decision = settle(story, terms.schedule, now, terms.overlap_policy)
    assert decision.start is not None
    rows.take(row, decision)
    started = Started(row, decision.start, declaration, terms.overlap_policy)
    [claim], told = active_runs.write_decided(held, [row], decision.events, now, [started])
    return CommittedStart(claim, (*held.events, *told))


class DoneError(RuntimeError):
    """Raised if an occurrence has a successful run."""


class LiveDueError(RuntimeError):
    """Raised if a scheduled run is due, which goes first."""


def occurrences_done(name: str, since: datetime, until: datetime) -> set[datetime]:
    runs = TaskRun.objects.using(database.alias()).filter(
        scheduler__deployment=options().DEPLOYMENT,
        task_name=name,
        outcome=Outcome.SUCCEEDED,
        scheduled_for__range=(since, until),
    )
    return set(runs.values_list("scheduled_for", flat=True))


def audit_backfill(name: str, act: Act) -> None:
    """Write down that somebody asks for runs of the past.

    Raises:
        NotRegisteredError: the task has no row.
    """
    with locked(outsider()) as held:
        row = None if held is None else held.task(name)
        if held is None or row is None:
            raise NotRegisteredError(name)
        operator_actions.audit(held, [row], act, TaskOverride.Kind.BACKFILL)


@database.again_after_conflict
def start_occurrence(
    member: Member,
    process: Process,
    declaration: Declaration,
    occurrence: datetime,
    now: datetime,
    *,
    repeat: bool,
    candidacy: Candidacy = Candidacy(),  # noqa: B008 - frozen
) -> CommittedStart:
    """Start a run of one occurrence of the past.

    Raises:
        NotRegisteredError: the task has no row.
        UnreadableRowError: its row is damaged.
        AlreadyRunningError: its run is in progress, here or elsewhere.
        LiveDueError: a run of the schedule is due, and somebody is there to start it.
        DoneError: the occurrence has a run that succeeded.
        django.db.Error: nothing was committed, nothing may be called.
    """
    with naming_what_is_held(member.using, member.deployment), locked(member, candidacy) as held:
        if held is None:
            raise NotRegisteredError(declaration.name)
        row = _free(held, declaration.name, now)
        attempt = _attempt(held, row, occurrence, repeat=repeat)
        liveness.register(held, process)
        story = backfill(Story(rows.state_of(row)), occurrence, attempt, now)
        return _write(held, row, declaration, story, now)


def _free(held: LockedDeployment, name: str, now: datetime) -> ScheduledTask:
    """Return the row of a task that nothing keeps from starting, not even a run of its schedule.

    Without a leader, the run of a dead process may block the task: end it here.
    """
    expires = held.row.lease_expires_at
    is_led = expires is not None and expires > held.database_now
    if not is_led:
        held.events += recovery.reap(held, now)
    row = free_row(held, name)
    is_due = row.wake_at is not None and row.wake_at <= now
    if is_led and is_due and not rows.runs_beside(row):
        raise LiveDueError(row.name)
    return row


def _attempt(
    held: LockedDeployment, row: ScheduledTask, occurrence: datetime, *, repeat: bool
) -> int:
    """Number the run of an occurrence among those of its kind, unless it has succeeded."""
    runs = held.runs.filter(task_name=row.name, scheduled_for=occurrence)
    if not repeat and runs.filter(outcome=Outcome.SUCCEEDED).exists():
        raise DoneError(row.name)
    mine = runs.filter(reason=BACKFILL, epoch=row.epoch)
    return 1 + (mine.aggregate(newest=Max("attempt"))["newest"] or 0)


def requested(member: Member) -> list[int]:
    """Return the runs of an instance that were asked to end and have not."""
    # SQLite does not use an index for IS NOT NULL.
    asked = TaskRun.objects.using(member.using).filter(
        instance=member.instance, running_slot__isnull=False, cancel_requested_at__gt=LONG_AGO
    )
    with database.direct(member.using):
        return list(asked.values_list("pk", flat=True))


CANCELLABLE = (Outcome.RUNNING, Outcome.WAITING)
"""The outcomes of runs that can be cancelled."""


class Effect(StrEnum):
    ENDED = "ended"
    ASKED = "asked"
    NONE = "none"


@database.again_after_conflict
def cancel(run: TaskRun, act: Act, database_time: BaseExpression | None = None) -> Effect:
    """End a run that waits; ask one in progress to end, for its callback or its runner.

    Returns:
        the effect; none if the run has ended, or was asked before.
    """
    member = outsider(database_time)
    if run.outcome != Outcome.WAITING:
        # A run that has started never waits again, so asking it to end needs no lock.
        return _ask(member, run, act)
    with locked(member) as held:
        if held is None:
            return Effect.NONE
        if _take_out(held, run, act):
            return _record_end(member, run, act)
        if _end_behind(held, run, act):
            return Effect.ENDED
        return _ask(member, run, act)


def _take_out(held: LockedDeployment, run: TaskRun, act: Act) -> bool:
    """Reserve a waiting run for nobody, so that its end is recorded like every other."""
    waiting = TaskRun.objects.using(held.using).filter(
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
        _audit(held.member, run, act)
    return bool(taken)


def _record_end(member: Member, run: TaskRun, act: Act) -> Effect:
    # A run of an external worker is recorded without an instance.
    nobodys = replace(member, instance=cast(UUID, None))
    ended = Result(run.pk, run.task_name, act.at, succeeded=False, error="cancelled")
    recorded = results.record_here(nobodys, ended, act.at)
    publish_on_commit(recorded.events, member.using)
    # Where somebody holds its task's row, the leader ends it: its reservation is over.
    return Effect.ASKED if recorded.held else Effect.ENDED


def _end_behind(held: LockedDeployment, run: TaskRun, act: Act) -> bool:
    """End a run that waits behind another one, under the lock: no leader begins it meanwhile."""
    told = active_runs.drop_one_waiting(held, run, act.at)
    if not told:
        return False
    _audit(held.member, run, act)
    told_of = held.tasks.filter(name=run.task_name)
    publish_on_commit(outbox.tell(held, told, told_of), held.using)
    return True


def _ask(member: Member, run: TaskRun, act: Act) -> Effect:
    with database.atomic(member.using):
        mine = TaskRun.objects.using(member.using).filter(pk=run.pk, scheduler=run.scheduler_id)
        in_progress = mine.filter(outcome=Outcome.RUNNING, cancel_requested_at=None)
        if not in_progress.update(cancel_requested_at=act.at):
            return Effect.NONE
        _audit(member, run, act)
    return Effect.ASKED


def _audit(member: Member, run: TaskRun, act: Act) -> None:
    kind = TaskOverride.Kind.CANCEL
    entry = operator_actions.entry(run.scheduler_id, run.task_name, kind, act)
    database.insert(member.using, [entry])
