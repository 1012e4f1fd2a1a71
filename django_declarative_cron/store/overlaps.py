"""Runs beside and behind one another: what is active, what waits, what was asked to end.

Nothing here is asked or written for a task that coalesces.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import Case, F, QuerySet, Value, When

from ..core import events
from ..core.decide import CONCURRENT
from ..core.declarations.declaration import Declaration
from ..core.overlap import ActiveRun, Policy
from ..core.start import BACKFILL
from ..fields import InstantField
from ..models import Outcome, ScheduledTask, SchedulerState, TaskRun
from .guard import Locked, Member
from .rows import ACTIVE, runs_beside, told_row

Active = Mapping[str, list[ActiveRun]]

_LATER = timedelta(seconds=1)
"""How soon a reservation is looked at again that seems to be over and is not."""

_APART = "\n"
"""Begins the ending of a slot; no name has it."""


def slot_of(name: str, policy: Policy) -> str:
    """Return the slot of a run that starts: the name, unless its task may run beside itself."""
    return own_slot(name) if policy in CONCURRENT else name


def own_slot(name: str) -> str:
    """Return a slot that no other run has."""
    return f"{name}{_APART}{uuid.uuid4().hex}"


def is_apart(run: TaskRun) -> bool:
    """Return whether a run was started so that others may go on beside it."""
    return _APART in (run.running_slot or "")


def may_have_others(run: TaskRun, task: ScheduledTask, known: Declaration | None = None) -> bool:
    """Return whether further runs of a task may go on beside one of them."""
    return is_apart(run) or runs_beside(task, known)


def is_overtaken(run: TaskRun, task: ScheduledTask) -> bool:
    """Return whether a newer occurrence was started beside a run, even if that one has ended."""
    newest = task.occurrence_at
    return newest is not None and run.scheduled_for < newest and run.reason != BACKFILL


def active_runs(held: Locked, member: Member, tasks: Iterable[ScheduledTask]) -> Active:
    """Return the runs that run or wait, of those tasks whose next decision asks for them."""
    # Who coalesces is not considered while it runs.
    asked = {task.name: task for task in tasks if task.waiting or task.running_run is not None}
    if not asked:
        return {}
    found: dict[str, list[ActiveRun]] = {name: [] for name in asked}
    fields = ("task_name", "pk", "scheduled_for", "outcome")
    further = ("cancel_requested_at", "reason", "reserved_until")
    rows = _active(held, member).filter(task_name__in=list(asked)).order_by("pk")
    for name, pk, scheduled_for, outcome, asked_at, reason, until in rows.values_list(
        *fields, *further
    ):
        waits = outcome == Outcome.WAITING and pk != asked[name].running_run
        found[name].append(ActiveRun(pk, scheduled_for, waits, asked_at is not None, reason, until))
    for name, task in asked.items():
        # Whoever deleted the row of a run has not ended it.
        if task.running_run is not None and task.running_run not in {r.run for r in found[name]}:
            since = task.occurrence_at or task.registered_at
            found[name].append(ActiveRun(task.running_run, since))
    return found


def wake_of(row: ScheduledTask, active: Sequence[ActiveRun], now: datetime) -> datetime | None:
    """Return when to look at a task again: not after the end of a worker's reservation."""
    ends = [max(run.reserved_until, now + _LATER) for run in active if run.reserved_until]
    return min([*ends, *filter(None, [row.wake_at])], default=None)


def _active(held: Locked, member: Member) -> QuerySet[TaskRun]:
    return TaskRun.objects.using(member.using).filter(ACTIVE, scheduler=held.row)


def others(
    held: Locked, member: Member, names: Collection[str], ended: Collection[int]
) -> dict[str, int]:
    """Return the newest run that goes on, of each task that has one."""
    if not names:
        return {}
    going_on = _active(held, member).filter(task_name__in=names).exclude(outcome=Outcome.WAITING)
    return dict(going_on.exclude(pk__in=ended).order_by("pk").values_list("task_name", "pk"))


def waiting_rows(
    scheduler: SchedulerState, row: ScheduledTask, told: Iterable[events.Event]
) -> list[TaskRun]:
    """Return the rows of runs that begin to wait."""
    return [
        told_row(
            scheduler,
            row,
            event,
            outcome=Outcome.WAITING,
            attempt=1,
            detail={"behind": event.behind},
            running_slot=own_slot(event.task_name),
        )
        for event in told
        if isinstance(event, events.TaskRunWaiting)
    ]


def request_cancels(held: Locked, member: Member, told: Iterable[events.Event]) -> list[TaskRun]:
    """Write down which runs are asked to end; those that wait end with it.

    Returns:
        those that no external worker had fetched: they have ended too, and no event says so yet.
    """
    asked = [event for event in told if isinstance(event, events.TaskRunCancelRequested)]
    if not asked:
        return []
    at = asked[0].at
    mine = _active(held, member).filter(cancel_requested_at=None)
    # What only waits for a worker to fetch it can end at once.
    waiting = mine.filter(pk__in=[event.run for event in asked], waits_in__isnull=False)
    offered = list(waiting.order_by("pk"))
    _end_waiting(mine.filter(pk__in=[run.pk for run in offered]), at)
    mine.filter(pk__in=[event.run for event in asked if not event.waits]).update(
        cancel_requested_at=at
    )
    _end_waiting(mine.filter(pk__in=[event.run for event in asked if event.waits]), at)
    return offered


def withdraw(held: Locked, member: Member, names: Collection[str], now: datetime) -> list[TaskRun]:
    """End runs that no external worker has fetched yet: their tasks are not theirs any more.

    Returns:
        their rows; no event says so yet.
    """
    offered = _active(held, member).filter(task_name__in=names, waits_in__isnull=False)
    withdrawn = list(offered.order_by("pk"))
    if withdrawn:
        _end_waiting(_active(held, member).filter(pk__in=[run.pk for run in withdrawn]), now)
    return withdrawn


def ends_of(offered: Iterable[TaskRun], now: datetime) -> list[events.TaskRunCancelled]:
    """Tell that runs have ended before any external worker fetched them."""
    return [
        events.TaskRunCancelled(
            at=now,
            task_name=run.task_name,
            duration=0.0,
            history_only=True,
            run=run.pk,
            others=True,
        )
        for run in offered
    ]


def drop_waiting(
    held: Locked, member: Member, name: str, now: datetime
) -> list[events.TaskRunCancelRequested]:
    """End every run of a task that waits: nothing is owed for its past any more."""
    return _drop(_behind(held, member, name), name, now, "overridden")


def drop_one_waiting(
    held: Locked, member: Member, run: TaskRun, now: datetime
) -> list[events.TaskRunCancelRequested]:
    """End a run that waits behind another one, where somebody asks for it."""
    mine = _behind(held, member, run.task_name).filter(pk=run.pk)
    return _drop(mine, run.task_name, now, "requested")


def _behind(held: Locked, member: Member, name: str) -> QuerySet[TaskRun]:
    return _active(held, member).filter(task_name=name, outcome=Outcome.WAITING, waits_in=None)


def _drop(
    waiting: QuerySet[TaskRun], name: str, now: datetime, reason: str
) -> list[events.TaskRunCancelRequested]:
    told = [
        events.TaskRunCancelRequested(at=now, task_name=name, run=run, reason=reason, waits=True)
        for run in waiting.order_by("pk").values_list("pk", flat=True)
    ]
    _end_waiting(waiting, now)
    return told


def _end_waiting(waiting: QuerySet[TaskRun], at: datetime) -> None:
    waiting.update(
        outcome=Outcome.CANCELLED,
        cancel_requested_at=at,
        finished_at=at,
        running_slot=None,
        waits_in=None,
    )


def begin(
    held: Locked, member: Member, begun: list[tuple[ScheduledTask, events.TaskRunStarted]]
) -> None:
    """Start runs that have waited."""
    begun = [(row, event) for row, event in begun if event.waited is not None]
    for row, event in begun:
        row.running_run = event.waited
    for is_alone in (True, False):
        runs = {
            event.waited: event.actual_time
            for row, event in begun
            if event.waited and runs_beside(row) is not is_alone
        }
        if not runs:
            continue
        values = {"running_slot": F("task_name")} if is_alone else {}
        _active(held, member).filter(pk__in=runs).update(
            outcome=Outcome.RUNNING,
            started_at=_dates(runs),
            instance_id=member.instance,
            term=held.row.term,
            **values,
        )


def _dates(runs: Mapping[int, datetime]) -> Case:
    """Date the start of each run: most of one pass begin at one instant.

    What ended after the pass had begun dates the next start of its task.
    """
    common, *_ = runs.values()
    others = [
        When(pk=run, then=Value(at, InstantField())) for run, at in runs.items() if at != common
    ]
    return Case(*others, default=Value(common, InstantField()))
