"""Runs for external workers: offered, reserved, kept alive, ended; and any run by its job id.

A run that an external worker is to do waits in a queue. A worker that fetches it reserves it,
once: another attempt is another run with another id, so a worker whose reservation ran out
can do nothing to it any more. Heartbeats extend the reservation; once they are missing
for too long, the leader finds the run interrupted, as it finds those of dead processes.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from django.db.models import Case, Q, QuerySet, When
from django.db.models.expressions import BaseExpression

from ..core import events
from ..models import Origin, Outcome, ScheduledTask, TaskRun
from ..signals import publish_on_commit
from . import bulk_update, database, liveness, manual_runs, outbox, results
from .guard import LockedDeployment, Member, locked, outsider, read_state
from .liveness import Process
from .manual_runs import Effect
from .operator_actions import Act
from .posted_tasks import OwnedError
from .recovery import start_of
from .results import Result

_NO_RUNS = (Outcome.SKIPPED, Outcome.MISSED)


class NoJobError(LookupError):
    """Raised if no run has a job id."""


class StateError(RuntimeError):
    """Raised if a run is not in the required state."""

    def __init__(self, run: TaskRun) -> None:
        super().__init__(f"run {run.pk} is {run.outcome}")
        self.run = run


@dataclass(frozen=True, slots=True)
class Claimant:
    """The worker that presents a job; its name is empty if it has none."""

    reservations: Collection[UUID]
    worker: str = ""

    def holds(self, run: TaskRun) -> bool:
        is_other_worker = self.worker and run.worker and self.worker != run.worker
        return run.reservation in self.reservations and not is_other_worker


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a worker's run.

    Args:
        error: one line, empty on success.
        names: every name the error goes by, for a retry policy.
        is_final: it is not retried, even if the policy allows it.
    """

    error: str = ""
    names: tuple[str, ...] = ()
    trace: str = ""
    value: Any = None
    is_final: bool = False


# --- workers ---


def fetch(
    queues: Sequence[str],
    count: int,
    worker: str,
    visibility: timedelta,
    database_time: BaseExpression | None = None,
) -> list[TaskRun]:
    """Reserve waiting runs; no two workers get one."""
    member = outsider(database_time)
    if not queues or not _waiting(member).filter(waits_in__in=queues).exists():
        # An idle worker holds up nobody.
        return []
    return _fetch(member, queues, count, worker, visibility)


@database.again_after_conflict
def _fetch(
    member: Member, queues: Sequence[str], count: int, worker: str, visibility: timedelta
) -> list[TaskRun]:
    order = Case(*(When(waits_in=queue, then=place) for place, queue in enumerate(queues)))
    with locked(member) as held:
        waiting = _waiting(member).filter(waits_in__in=queues).order_by(order, "pk")
        fetched = list(database.lockable(member.using, waiting)[:count])
        if held is None or not fetched:
            return []
        for run in fetched:
            run.outcome, run.waits_in, run.worker = Outcome.RUNNING, None, worker[:255]
            run.started_at = held.database_now
            run.reservation = uuid.uuid4()
            run.reserved_until = held.database_now + visibility
        fields = ["outcome", "waits_in", "worker", "started_at", "reservation", "reserved_until"]
        bulk_update.update(member.using, fetched, fields)
        _wake(held, fetched)
        publish_on_commit(_told_of(held, fetched), member.using)
    return fetched


def _told_of(held: LockedDeployment, fetched: Sequence[TaskRun]) -> list[events.Event]:
    tasks = held.tasks.filter(name__in={run.task_name for run in fetched})
    told = [
        events.TaskRunFetched(
            at=held.database_now,
            task_name=run.task_name,
            scheduled_time=run.scheduled_for,
            worker=run.worker,
            attempt=run.attempt,
            run=run.pk,
        )
        for run in fetched
    ]
    return outbox.tell(held, told, tasks, fetched)


def _wake(held: LockedDeployment, runs: Iterable[TaskRun]) -> None:
    """Set the tasks to be considered when the reservations end."""
    for run in runs:
        tasks = ScheduledTask.objects.using(held.using).filter(
            Q(wake_at=None) | Q(wake_at__gt=run.reserved_until),
            scheduler=held.row,
            running_run=run.pk,
        )
        tasks.update(wake_at=run.reserved_until)


def extend(
    jobs: Collection[str],
    claimant: Claimant,
    visibility: timedelta,
    database_time: BaseExpression | None = None,
) -> list[TaskRun]:
    """Keep reservations alive.

    Returns:
        the runs that are still reserved.
    """
    member = outsider(database_time)
    keys = {run for job in jobs for run, _ in outbox.runs_of(job) if run < 2**63}
    mine = _runs(member).filter(pk__in=keys, outcome=Outcome.RUNNING, reservation__isnull=False)
    with database.atomic(member.using):
        runs = list(
            database.lockable(
                member.using, mine.annotate(database_now=member.database_time).order_by("pk")
            )
        )
        kept: list[TaskRun] = [run for run in runs if claimant.holds(run)]
        for run in kept:
            run.reserved_until = cast(Any, run).database_now + visibility
        bulk_update.update(member.using, kept, ["reserved_until"])
    return kept


def end(
    job: str,
    claimant: Claimant,
    report: Report,
    database_time: BaseExpression | None = None,
) -> tuple[TaskRun, events.Event | None]:
    """Record how a worker's run ended, fenced: only one that is still reserved is ended.

    Returns:
        its row, and the event of its end.

    Raises:
        NoJobError: there is no such run, or it is none of an external worker.
        StateError: it is not reserved, or by another worker.
        django.db.Error: nothing was recorded.
    """
    member = outsider(database_time)
    run = _reserved(job, claimant)
    now = _now(member)
    result = Result(
        run.pk,
        run.task_name,
        now,
        succeeded=not report.error,
        error=report.error,
        traceback=report.trace,
        errors=report.names,
        value=report.value,
        is_final=report.is_final,
    )
    return _recorded(member, job, result)


def _reserved(job: str, claimant: Claimant) -> TaskRun:
    run = find(job)
    if run.job is None:
        raise NoJobError(job)
    if run.outcome != Outcome.RUNNING or not claimant.holds(run):
        raise StateError(run)
    return run


def _recorded(member: Member, job: str, result: Result) -> tuple[TaskRun, events.Event | None]:
    # A run of an external worker is recorded without an instance.
    nobodys = replace(member, instance=cast(UUID, None))
    recorded = results.record(nobodys, [result], result.finished_at)
    publish_on_commit(recorded.events, member.using)
    after = find(job)
    if recorded.held or any(
        isinstance(event, events.TaskRunResultDiscarded) for event in recorded.events
    ):
        raise StateError(after)
    return after, next(iter(recorded.events), None)


# --- any run, by its job id ---


def find(job: str) -> TaskRun:
    """Return a run by its job id.

    Raises:
        NoJobError: there is no such run.
    """
    member = outsider()
    for run, key in outbox.runs_of(job):
        found = _runs(member).filter(pk=run).exclude(outcome__in=_NO_RUNS).first()
        if found and outbox.is_name_of(job, run, found.scheduled_for, key):
            return found
    raise NoJobError(job)


def cancel(job: str, act: Act, database_time: BaseExpression | None = None) -> TaskRun:
    """Cancel a run: one that waits ends, one that runs is asked to end.

    Returns:
        its row, as it stands now.

    Raises:
        NoJobError: there is no such run.
        OwnedError: it is of a task that settings declare.
        StateError: it has ended.
    """
    member, run = outsider(database_time), find(job)
    if run.origin != Origin.HTTP:
        raise OwnedError(run.task_name)
    effect = manual_runs.cancel(run, replace(act, at=_now(member)), database_time)
    after = find(job)
    if effect is not Effect.ENDED and after.outcome != Outcome.RUNNING:
        raise StateError(after)
    return after


def _now(member: Member) -> datetime:
    now: datetime = read_state(member).database_now
    return now


def _waiting(member: Member) -> QuerySet[TaskRun]:
    return _runs(member).filter(outcome=Outcome.WAITING, waits_in__isnull=False)


def _runs(member: Member) -> QuerySet[TaskRun]:
    return TaskRun.objects.using(member.using).filter(scheduler__deployment=member.deployment)


@dataclass(frozen=True, slots=True)
class Taken:
    """A run that was taken up."""

    started: events.TaskRunStarted
    task: ScheduledTask


@database.again_after_conflict
def take_up(member: Member, process: Process, run: int, of: UUID) -> Taken | None:
    """Become the instance of a run, if the process that queued it still has it.

    Returns:
        the run, ``None`` where it is in other hands or has ended.
    """
    with locked(member) as held:
        if held is None:
            return None
        row = _open(member, [run], of).filter(scheduler=held.row).select_for_update().first()
        if row is None:
            return None
        task = held.task(row.task_name)
        if task is None:
            return None
        liveness.register(held, process)
        row.instance_id = member.instance
        row.save(using=member.using, update_fields=["instance"])
        return Taken(start_of(row), task)


def in_hands(member: Member, runs: Collection[int]) -> set[int]:
    """Return those of some runs that nobody has taken up yet."""
    with database.direct(member.using):
        return {
            pk
            for chunk in database.chunks(runs)
            for pk in _open(member, chunk, member.instance).values_list("pk", flat=True)
        }


@database.again_after_conflict
def let_go(member: Member, runs: Collection[int]) -> None:
    """Leave runs that nobody has taken up; the next scheduler finds them interrupted."""
    with locked(member) as held:
        if held is not None:
            for chunk in database.chunks(runs):
                _open(member, chunk, member.instance).update(instance=None)


def _open(member: Member, runs: Collection[int], of: UUID) -> Any:
    return TaskRun.objects.using(member.using).filter(
        pk__in=list(runs), outcome=Outcome.RUNNING, instance=of
    )
