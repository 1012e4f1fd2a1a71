"""Starting runs of the past, beside the schedule and under the same lock."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Max

from ..conf import options
from ..core.decide import Story, settle
from ..core.declarations.declaration import Declaration
from ..core.start import BACKFILL, backfill
from ..models import Outcome, ScheduledTask, TaskOverride, TaskRun
from . import database, liveness, operator_actions, outbox, recovery, rows
from .database import naming_what_is_held
from .foreground import NotRegisteredError, Start, free_row, readable_terms
from .guard import Bid, Locked, Member, locked, locked_deployment
from .liveness import Process
from .operator_actions import Act
from .starts import Started, write_starts


class DoneError(RuntimeError):
    """Tell that an occurrence has a run that succeeded."""


class LiveDueError(RuntimeError):
    """Tell that a run of the schedule is due, which goes first."""


def done(name: str, since: datetime, until: datetime) -> set[datetime]:
    """Return the occurrences that have a run that succeeded."""
    runs = TaskRun.objects.using(database.alias()).filter(
        scheduler__deployment=options().DEPLOYMENT,
        task_name=name,
        outcome=Outcome.SUCCEEDED,
        scheduled_for__range=(since, until),
    )
    return set(runs.values_list("scheduled_for", flat=True))


def audit(name: str, act: Act) -> None:
    """Write down that somebody asks for runs of the past.

    Raises:
        NotRegisteredError: the task has no row.
    """
    using = database.alias()
    with locked_deployment(using, options().DEPLOYMENT, options().LEASE) as held:
        row = None if held is None else _row(held, using, name)
        if held is None or row is None:
            raise NotRegisteredError(name)
        operator_actions.audit(held, using, [row], act, TaskOverride.Kind.BACKFILL)


def _row(held: Locked, using: str, name: str) -> ScheduledTask | None:
    return ScheduledTask.objects.using(using).filter(scheduler=held.row, name=name).first()


@database.again_after_conflict
def start(
    member: Member,
    process: Process,
    declaration: Declaration,
    occurrence: datetime,
    now: datetime,
    *,
    repeat: bool,
    bid: Bid = Bid(),  # noqa: B008 - frozen
) -> Start:
    """Start a run of one occurrence of the past.

    Raises:
        NotRegisteredError: the task has no row.
        UnreadableRowError: its row is damaged.
        AlreadyRunningError: its run is in progress, here or elsewhere.
        LiveDueError: a run of the schedule is due, and somebody is there to start it.
        DoneError: the occurrence has a run that succeeded.
        django.db.Error: nothing was committed, nothing may be called.
    """
    with naming_what_is_held(member.using, member.deployment), locked(member, bid) as held:
        if held is None:
            raise NotRegisteredError(declaration.name)
        row = _free(held, member, declaration.name, now)
        attempt = _attempt(held, member, row, occurrence, repeat=repeat)
        liveness.register(held, member, process)
        return _start(held, member, row, declaration, (occurrence, attempt), now)


def _free(held: Locked, member: Member, name: str, now: datetime) -> ScheduledTask:
    """Return the row of a task that nothing keeps from starting.

    Where nobody leads, what keeps it may be a run whose process died: nobody else ends it.
    """
    if not _is_led(held):
        held.events += recovery.reap(held, member, now)
    row = free_row(held, member, name)
    _give_way(held, row, now)
    return row


def _attempt(
    held: Locked, member: Member, row: ScheduledTask, occurrence: datetime, *, repeat: bool
) -> int:
    """Number the run of an occurrence among those of its kind, unless it has succeeded."""
    runs = TaskRun.objects.using(member.using).filter(
        scheduler=held.row, task_name=row.name, scheduled_for=occurrence
    )
    if not repeat and runs.filter(outcome=Outcome.SUCCEEDED).exists():
        raise DoneError(row.name)
    mine = runs.filter(reason=BACKFILL, epoch=row.epoch)
    return 1 + (mine.aggregate(newest=Max("attempt"))["newest"] or 0)


def _give_way(held: Locked, row: ScheduledTask, now: datetime) -> None:
    """Let what the schedule owes go first, where a leader is there to start it."""
    is_due = row.wake_at is not None and row.wake_at <= now
    if _is_led(held) and is_due and not rows.runs_beside(row):
        raise LiveDueError(row.name)


def _is_led(held: Locked) -> bool:
    expires = held.row.lease_expires_at
    return expires is not None and expires > held.database_now


def _start(
    held: Locked,
    member: Member,
    row: ScheduledTask,
    declaration: Declaration,
    asked: tuple[datetime, int],
    now: datetime,
) -> Start:
    story, terms = Story(rows.state_of(row)), readable_terms(row)
    policy = terms.overlap_policy
    decision = settle(backfill(story, *asked, now), terms.schedule, now, policy)
    assert decision.start is not None
    rows.take(row, decision)
    [claim] = write_starts(held, member, [Started(row, decision.start, declaration, policy)], [])
    database.upsert(member.using, [row], rows.STATE_FIELDS)
    told = outbox.tell(held, member.using, decision.events, [row], starts=[claim.started])
    return Start(claim, (*held.events, *told))
