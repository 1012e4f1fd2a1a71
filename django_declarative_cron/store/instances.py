"""Scheduler instances: coming, living, leaving, and runs of the dead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from ..core import events
from ..core.decide import Story, settle
from ..core.state import TaskState
from ..fields import InstantField
from ..models import Outcome, ScheduledTask, SchedulerInstance, SchedulerState, TaskRun
from . import database, rows
from .guard import LONG_AGO, Locked, Member, release

Lapse = tuple[datetime, datetime]
"""Where a clock leapt from and to; backwards where it was set back."""

_LAPSES_KEPT = 1000
_RUN_FIELDS = ["outcome", "finished_at", "running_slot", "error"]


@dataclass(frozen=True, slots=True)
class Process:
    """Where a scheduler instance runs.

    Args:
        host: name of the machine or container.
        pid: process id there.
        release: of the project, where it says one.
    """

    host: str
    pid: int
    release: str = ""


def register(held: Locked, member: Member, process: Process) -> SchedulerInstance:
    """Write the row of a process that begins to schedule; a living row is kept.

    Args:
        held: the locked row of the deployment.
        member: who comes.
        process: where it runs.
    """
    instance, _ = SchedulerInstance.objects.using(member.using).update_or_create(
        id=member.instance,
        create_defaults={
            "scheduler": held.row,
            "host": process.host,
            "pid": process.pid,
            "release": process.release,
            "digest": member.digest,
            "started_at": held.database_now,
            "heartbeat_at": held.database_now,
        },
        defaults={
            "digest": member.digest,
            "heartbeat_at": held.database_now,
            "mute_since": None,
            "stop_requested_at": None,
            "stopped_at": None,
        },
    )
    return instance


def initialized(member: Member, now: datetime) -> None:
    """Write down that the set of an instance is the active one; the first time is kept.

    Args:
        member: whose set.
        now: the instant of the initialisation.
    """
    mine = SchedulerInstance.objects.using(member.using).filter(id=member.instance)
    first = Coalesce("initialized_at", Value(now, InstantField()))
    mine.update(initialized_at=first, digest=member.digest)


@database.again_after_conflict
def heartbeat(member: Member) -> bool:
    """Say that a process lives, and renew its lease where it leads.

    Args:
        member: who lives.

    Returns:
        whether its row is still there.
    """
    with database.direct(member.using):
        return _heartbeat(member)


def _heartbeat(member: Member) -> bool:
    states = SchedulerState.objects.using(member.using).filter(deployment=member.deployment)
    state = states.annotate(database_now=member.database_time).first()
    if state is None:
        return False
    now = state.database_now
    living = SchedulerInstance.objects.using(member.using).filter(id=member.instance)
    lives = _is_heard(living, member, now, mute_since=None)
    if state.leader_id == member.instance:
        # Last, because somebody may hold this row.
        with database.atomic(member.using):
            mine = states.filter(leader=member.instance, term=state.term)
            mine.update(lease_expires_at=now + member.lease)
    return lives


@database.again_after_conflict
def vouch(member: Member) -> bool:
    """Say that a process lives which cannot say so itself; its lease is for itself to renew.

    Args:
        member: of whom it is said.

    Returns:
        whether it has a row, and has neither left in order nor given itself up.
    """
    mine = SchedulerInstance.objects.using(member.using).filter(id=member.instance)
    here = mine.filter(
        # Whoever left in order was heard of at that very instant.
        Q(stopped_at=None) | Q(heartbeat_at__lt=F("stopped_at")),
        heartbeat_at__gt=LONG_AGO,
    )
    row = here.annotate(database_now=member.database_time).first()
    if row is None:
        return False
    since = row.mute_since or row.heartbeat_at
    return _is_heard(here, member, row.database_now, mute_since=since)


def _is_heard(
    mine: QuerySet[SchedulerInstance],
    member: Member,
    now: datetime,
    *,
    mute_since: datetime | None,
) -> bool:
    heard = mine.filter(heartbeat_at__gt=now - member.longest_silence)
    values = {"heartbeat_at": now, "mute_since": mute_since, "stopped_at": None}
    return bool(heard.update(**values)) or _comes_back(member, now, mute_since)


def _comes_back(member: Member, now: datetime, mute_since: datetime | None) -> bool:
    """Let a process live after all that was silent for so long that it counted as dead."""
    with database.atomic(member.using):
        row = _own_row(member)
        if row is None:
            return False
        if row.heartbeat_at > LONG_AGO:
            row.lapses = _with(row.lapses, [(row.heartbeat_at, now)])
        row.heartbeat_at, row.stopped_at, row.mute_since = now, None, mute_since
        fields = ["lapses", "heartbeat_at", "stopped_at", "mute_since"]
        row.save(using=member.using, update_fields=fields)
    return True


@database.again_after_conflict
def lapsed(member: Member, lapses: Iterable[Lapse]) -> None:
    """Write down time that a process did not live through, or lived through twice.

    Args:
        member: whose clock it was.
        lapses: where its clock leapt from and to.
    """
    with database.atomic(member.using):
        row = _own_row(member)
        if row is not None:
            row.lapses = _with(row.lapses, lapses)
            row.save(using=member.using, update_fields=["lapses"])


def _own_row(member: Member) -> SchedulerInstance | None:
    rows = SchedulerInstance.objects.using(member.using).select_for_update()
    return rows.filter(id=member.instance).first()


def _with(known: list[list[str]], lapses: Iterable[Lapse]) -> list[list[str]]:
    added = [[since.isoformat(), until.isoformat()] for since, until in lapses]
    return [*known, *added][-_LAPSES_KEPT:]


@database.again_after_conflict
def stop_requested(member: Member, now: datetime) -> None:
    """Write down that a process begins to stop, and give up its lead: its runs may take long.

    Args:
        member: who stops.
        now: the instant of the request.
    """
    with database.atomic(member.using):
        release(member)
        mine = SchedulerInstance.objects.using(member.using).filter(id=member.instance)
        mine.update(stop_requested_at=now)


@database.again_after_conflict
def leave(member: Member, now: datetime) -> None:
    """Write down that a process has stopped, and give up its lead.

    Args:
        member: who leaves.
        now: the instant it stopped.
    """
    with database.atomic(member.using):
        release(member)
        mine = SchedulerInstance.objects.using(member.using).filter(id=member.instance)
        # An orderly end is the last sign of life; whoever is found dead was silent before.
        mine.update(stopped_at=now, heartbeat_at=now)


@database.again_after_conflict
def give_up(member: Member) -> None:
    """Count a process as dead from now on: it goes, and its runs go with it.

    One that has left in order keeps its row as it is.

    Args:
        member: who goes.
    """
    with database.atomic(member.using):
        release(member)
        mine = SchedulerInstance.objects.using(member.using).filter(
            id=member.instance, stopped_at=None
        )
        asked = Coalesce("stop_requested_at", member.database_time)
        mine.update(heartbeat_at=LONG_AGO, stop_requested_at=asked)


def has_living_holder(member: Member, digest: str, now: datetime, *, vigil: bool) -> bool:
    """Tell whether any living instance holds a registration set.

    Args:
        member: who asks.
        digest: of the set.
        now: the database's time.
        vigil: the caller has watched for the longest silence, as ``reap`` demands it.
    """
    silent_since = now - member.longest_silence if vigil else LONG_AGO
    holders = SchedulerInstance.objects.using(member.using).filter(
        scheduler__deployment=member.deployment, digest=digest, stopped_at=None
    )
    return holders.filter(heartbeat_at__gt=silent_since).exists()


def reap(held: Locked, member: Member, now: datetime, *, vigil: bool = False) -> list[events.Event]:
    """End the runs of dead processes as interrupted (semantics 3, "who is dead").

    A silent process may only have been kept from the database, as everybody was.
    So silence counts where the caller has watched for as long and reached the database
    all the while; without that only those count that gave themselves up.

    Args:
        held: the locked row of the deployment.
        member: who leads.
        now: the instant of the tick.
        vigil: the caller has watched so long.
    """
    silent_since = held.database_now - member.longest_silence if vigil else LONG_AGO
    found = _runs_of_the_dead(held, member, silent_since)
    _bury(held, member, silent_since)
    if not found:
        return []
    tasks = _tasks_of(held, member, found)
    told: list[events.Event] = []
    for run in found:
        event = _interrupted(run, tasks.get(run.task_name), member, now)
        told.append(event)
        _end(run, now)
    database.upsert(member.using, found, _RUN_FIELDS)
    database.upsert(member.using, tasks.values(), rows.STATE_FIELDS)
    return told


def _bury(held: Locked, member: Member, silent_since: datetime) -> None:
    """Mark silent instances as stopped; one that lives after all beats again."""
    silent = SchedulerInstance.objects.using(member.using).filter(
        scheduler=held.row,
        stopped_at=None,
        heartbeat_at__lte=silent_since,
    )
    silent.exclude(id=member.instance).update(stopped_at=held.database_now)


def _runs_of_the_dead(held: Locked, member: Member, silent_since: datetime) -> list[TaskRun]:
    living = SchedulerInstance.objects.filter(id=OuterRef("instance")).filter(
        stopped_at=None, heartbeat_at__gt=silent_since
    )
    running = TaskRun.objects.using(member.using).filter(
        scheduler=held.row, running_slot__isnull=False
    )
    dead = running.filter(Q(instance=None) | ~Exists(living)).exclude(instance=member.instance)
    return list(dead)


def free_of_lost_runs(held: Locked, member: Member, now: datetime) -> None:
    """Let tasks go on whose run in progress has no row any more.

    Args:
        held: the locked row of the deployment.
        member: who initialises; its own runs may still end.
        now: the instant of the initialisation.
    """
    open_run = TaskRun.objects.filter(id=OuterRef("running_run"), running_slot__isnull=False)
    tasks = ScheduledTask.objects.using(member.using).filter(
        scheduler=held.row, running_run__isnull=False
    )
    tasks.filter(~Exists(open_run)).update(running_run=None, wake_at=now)


def _tasks_of(held: Locked, member: Member, found: Iterable[TaskRun]) -> dict[str, ScheduledTask]:
    ids = [run.pk for run in found]
    tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row)
    return {task.name: task for task in tasks.filter(running_run__in=ids)}


def _interrupted(
    run: TaskRun, task: ScheduledTask | None, member: Member, now: datetime
) -> events.TaskRunInterrupted:
    event = events.TaskRunInterrupted(
        at=now,
        task_name=run.task_name,
        scheduled_time=run.scheduled_for,
        old_instance=str(run.instance_id),
        new_instance=str(member.instance),
        restarts=task is not None and task.epoch == run.epoch,
    )
    if task is not None:
        state: TaskState = Story(rows.state_of(task)).then(event).state
        try:
            rows.take(task, settle(Story(state), rows.schedule_of(task), now))
        except rows.DAMAGE as damage:
            rows.set_aside(task, str(damage), now)
            task.running_run = None
    return event


def _end(run: TaskRun, now: datetime) -> None:
    run.outcome = Outcome.INTERRUPTED
    run.finished_at = now
    run.running_slot = None
    run.error = "the process it ran in is gone"
