"""Find dead scheduler instances, and interrupt or recover their runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from django.db.models import (
    Exists,
    Max,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    prefetch_related_objects,
)

from .. import conf
from ..core import events
from ..core.decide import BACKFILL, settle
from ..core.declarations.declaration import Declaration
from ..core.liveness import Watch
from ..core.repeated_failures import SUSPICIOUS
from ..core.state import Story
from ..exceptions import DeclarativeCronError
from ..models import Origin, Outcome, ScheduledTask, SchedulerInstance, TaskRun
from . import active_runs, bulk_update, database, outbox, rows
from .active_runs import Claim
from .guard import LONG_AGO, LockedDeployment, Member, locked, silence_limit, watch_of
from .posted_tasks import UnreadableError, is_external, own
from .rows import ACTIVE
from .status import ALIVE_UNTIL, last_sign_of_life


def has_living_holder(
    member: Member, digest: str, kept: Watch | None, own: Watch | None, now: datetime
) -> bool:
    """Return whether any living instance holds a registration set."""
    holders = SchedulerInstance.objects.using(member.using).filter(
        scheduler__deployment=member.deployment,
        digest=digest,
        stopped_at=None,
        heartbeat_at__gt=LONG_AGO,
    )
    # The caller holds another set, even if its row still names this one.
    others = holders.exclude(id=member.instance)
    newest = others.aggregate(newest=Max("heartbeat_at"))["newest"]
    if newest is None or newest > now - member.longest_silence:
        return newest is not None
    return bool(newest > silence_limit(member, kept, own, now))


def reap(held: LockedDeployment, now: datetime) -> list[events.Event]:
    """End the runs of dead processes as interrupted (docs/semantics.md, "Interrupted runs").

    A silent process may only have been kept from the database, as everybody was.
    So silence counts if the deployment was watched for as long without a gap;
    otherwise only processes that gave themselves up are dead. If a run's row or its task's row
    is locked, the run is left for the next tick and its process is not marked as dead. A process
    with a locked row cannot send heartbeats, so its silence does not count.
    """
    silent = _silent(held)
    told = interrupt(held, _runs_of_the_dead(held, silent), now)
    _bury(held, silent)
    return told


def is_anybody(held: LockedDeployment) -> Q:
    """Return a condition: ``reap`` may find something, or this instance is registered already.

    That is: its own instance or a silent one, or a run that is not its own.
    """
    instances = SchedulerInstance.objects.using(held.using)
    found = instances.filter(Q(id=held.member.instance) | _is_silent(held))
    others = _runs_in_processes(held).exclude(instance=held.member.instance)
    return Q(Exists(found)) | Q(Exists(others))


def _is_silent(held: LockedDeployment) -> Q:
    kept, own = watch_of(held.row), held.candidacy.watched
    since = silence_limit(held.member, kept, own, held.database_now)
    return Q(scheduler=held.row, stopped_at=None, heartbeat_at__lte=since)


def _silent(held: LockedDeployment) -> list[UUID]:
    """Lock the silent instances; leave out those with a locked row."""
    known = SchedulerInstance.objects.using(held.using).exclude(id=held.member.instance)
    silent = known.filter(_is_silent(held))
    return [row.pk for row in database.lockable(held.using, silent.order_by("pk").only("pk"))]


def expire(
    held: LockedDeployment, now: datetime, due: Sequence[ScheduledTask]
) -> list[events.Event]:
    """End the runs of external workers with expired reservations."""
    if not (conf.options().EXTERNAL_WORKERS or any(is_external(row) for row in due)):
        return []
    silent = held.runs.filter(
        ACTIVE,
        outcome=Outcome.RUNNING,
        reservation__isnull=False,
        reserved_until__lte=held.database_now,
    )
    found = list(database.lockable(held.using, silent.order_by("pk")))
    return interrupt(held, found, now)


def _bury(held: LockedDeployment, silent: list[UUID]) -> None:
    """Mark silent instances as stopped; one that lives sends a heartbeat again."""
    open_runs = TaskRun.objects.filter(ACTIVE, scheduler=held.row, instance=OuterRef("pk"))
    buried = SchedulerInstance.objects.using(held.using).filter(~Exists(open_runs))
    buried.filter(pk__in=silent).update(stopped_at=held.database_now)


def _runs_of_the_dead(held: LockedDeployment, silent: list[UUID]) -> list[TaskRun]:
    living = SchedulerInstance.objects.filter(
        id=OuterRef("instance"), stopped_at=None, heartbeat_at__gt=LONG_AGO
    )
    running = _runs_in_processes(held)
    dead = running.filter(Q(instance=None) | Q(instance__in=silent) | ~Exists(living))
    dead = dead.exclude(instance=held.member.instance)
    return list(database.lockable(held.using, dead.order_by("pk")))


def _runs_in_processes(held: LockedDeployment) -> QuerySet[TaskRun]:
    # A run reserved by an external worker is in no process of ours.
    ours = ACTIVE & Q(scheduler=held.row, reservation=None)
    return TaskRun.objects.using(held.using).filter(ours, ~Q(outcome=Outcome.WAITING))


def free_of_lost_runs(held: LockedDeployment, now: datetime) -> None:
    """Let tasks go on if the row of their run in progress is gone."""
    held.tasks.filter(is_lost()).update(running_run=None, wake_at=now)


def is_lost() -> Q:
    """Return a condition: the row of the task's run in progress is gone."""
    open_run = TaskRun.objects.filter(id=OuterRef("running_run"), running_slot__isnull=False)
    return Q(~Exists(open_run), running_run__isnull=False)


_RUN_FIELDS = ["outcome", "finished_at", "running_slot", "error", "detail"]


def interrupt(
    held: LockedDeployment, found: Sequence[TaskRun], now: datetime
) -> list[events.Event]:
    """End runs as interrupted; the newest one of a task restarts, unless it was to end.

    A run is left for the next tick if its task's row is locked.
    """
    if not found:
        return []
    tasks, elsewhere = _tasks_of(held, found)
    found = [run for run in found if run.pk not in elsewhere]
    beside = {
        run.task_name
        for run in found
        if run.pk in tasks and active_runs.may_have_others(run, tasks[run.pk])
    }
    others = active_runs.others(held, beside, [run.pk for run in found])
    known = SchedulerInstance.objects.using(held.using).defer("lapses")
    prefetch_related_objects(found, Prefetch("instance", known))
    told: list[events.Event] = []
    for run in found:
        task, other = tasks.get(run.pk), others.get(run.task_name)
        told.append(_interrupted(run, task, other, held.member, now))
        told += [] if task is None else _suspicion(task, now)
        _end(run, now)
    bulk_update.update(held.using, found, _RUN_FIELDS)
    bulk_update.update(held.using, tasks.values(), rows.STATE_FIELDS)
    return outbox.tell(held, told, tasks.values(), found)


def _tasks_of(
    held: LockedDeployment, found: Sequence[TaskRun]
) -> tuple[dict[int, ScheduledTask], set[int]]:
    """Return the tasks by their newest run, and the runs with a locked task."""
    ids = [run.pk for run in found]
    newest = held.tasks.filter(running_run__in=ids)
    free, elsewhere = database.lock(held.using, newest, "running_run", ids)
    return {task.running_run: task for task in free if task.running_run is not None}, elsewhere


def _interrupted(
    run: TaskRun, task: ScheduledTask | None, other: int | None, member: Member, now: datetime
) -> events.TaskRunInterrupted:
    knows = task is not None and task.epoch == run.epoch
    if task is not None and active_runs.may_have_others(run, task):
        knows = knows and not active_runs.is_overtaken(run, task)
    event = events.TaskRunInterrupted(
        at=now,
        task_name=run.task_name,
        scheduled_time=run.scheduled_for,
        old_instance=str(run.instance_id),
        new_instance=str(member.instance),
        restarts=knows and run.cancel_requested_at is None and run.reason != BACKFILL,
        run=run.pk,
        others=other is not None,
    )
    if task is None:
        return event
    state = Story(rows.state_of(task)).then(event).state
    try:
        terms = rows.terms_of(task)
        rows.take(task, settle(Story(state), terms.schedule, now, terms.overlap_policy))
    except DeclarativeCronError as damage:
        rows.set_aside(task, rows.reason_of(damage), now)
        task.running_run = None
    if other is not None:
        task.running_run = other
    return event


def _suspicion(task: ScheduledTask, now: datetime) -> list[events.Event]:
    """Report once that a task may crash its process."""
    if task.interruptions != SUSPICIOUS:
        return []
    count = task.interruptions
    return [events.TaskRepeatedlyInterrupted(at=now, task_name=task.name, interruptions=count)]


def _end(run: TaskRun, now: datetime) -> None:
    heard = run.reserved_until if run.reservation is not None else last_sign_of_life(run)
    if heard is not None:
        run.detail = {**(run.detail or {}), ALIVE_UNTIL: min(heard, now).isoformat()}
    run.outcome = Outcome.INTERRUPTED
    run.finished_at = now
    run.running_slot = None
    who = "process it ran in is gone" if run.reservation is None else "worker is not heard of"
    run.error = f"the {who}"


@database.again_after_conflict
def unanswered(
    member: Member, known: Collection[int], declarations: Mapping[str, Declaration]
) -> list[Claim]:
    """Return an instance's committed starts that it did not learn about.

    The lock is what makes it certain: a transaction that was cut off holds it until the
    server has ended it one way or the other.

    Returns:
        the claims to call now.
    """
    with locked(member) as held:
        if held is None:
            return []
        mine = held.runs.filter(ACTIVE, instance=member.instance)
        lost = [run for run in mine.order_by("pk") if run.pk not in known]
        by_name = {**declarations, **dict(_posted(held, lost))}
        lost = [run for run in lost if run.task_name in by_name]
        return [
            Claim(run.pk, run.task_name, start, run.term, by_name[run.task_name])
            for run, start in zip(lost, _started(held, lost), strict=True)
        ]


def _posted(held: LockedDeployment, lost: Collection[TaskRun]) -> Iterator[tuple[str, Declaration]]:
    names = {run.task_name for run in lost if run.origin == Origin.HTTP}
    for row in held.tasks.filter(origin=Origin.HTTP, name__in=names):
        with suppress(UnreadableError):
            yield row.name, own(row)


def _started(held: LockedDeployment, lost: Collection[TaskRun]) -> list[events.TaskRunStarted]:
    tasks = held.tasks.filter(name__in={run.task_name for run in lost})
    counts = {task.running_run: task.run_count for task in tasks}
    return outbox.recall(held, [start_of(run, counts.get(run.pk, 0)) for run in lost], tasks)


def start_of(run: TaskRun, run_count: int = 0) -> events.TaskRunStarted:
    return events.TaskRunStarted(
        at=run.started_at,
        task_name=run.task_name,
        scheduled_time=run.scheduled_for,
        actual_time=run.started_at,
        is_retry=run.reason == "retry",
        reason=run.reason,
        attempt=run.attempt,
        run_count=run_count,
        run=run.pk,
    )
