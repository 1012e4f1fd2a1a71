"""The status of tasks, runs and instances as people are shown it; nothing is written here.

Without a leader nobody ends the runs of a dead process, so pages and commands look at the
heartbeat themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    Case,
    CharField,
    Exists,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.expressions import BaseExpression
from django.utils.dateparse import parse_datetime

from ..conf import options
from ..core.events import LATE
from ..core.overlap import QUEUEING
from ..core.status import Status
from ..fields import InstantField
from ..models import Outcome, ScheduledTask, SchedulerInstance, SchedulerState, TaskRun
from .guard import LONG_AGO

PATIENCE = timedelta(seconds=30)
"""How old a heartbeat may be unless the options allow more."""

ALIVE_UNTIL = "alive_until"
"""Key in the detail of an interrupted run: the last sign of life of its process."""


def patience(lease: timedelta) -> timedelta:
    """Return how old the newest heartbeat of a living deployment may be."""
    return max(PATIENCE, lease)


def silent_since(now: datetime) -> datetime:
    """Return the newest heartbeat of a process that counts as gone."""
    ours = options()
    return now - max(patience(ours.LEASE), ours.longest_silence)


def is_gone(now: datetime) -> Q:
    """Return the condition of the runs that nothing carries on any more."""
    silent = Q(instance=None) | Q(instance__stopped_at__isnull=False)
    silent |= Q(instance__heartbeat_at__lte=silent_since(now))
    worker = Q(reservation__isnull=False, reserved_until__lte=now)
    return Q(outcome=Outcome.RUNNING) & (worker | Q(silent, reservation=None))


def is_interrupted(now: datetime) -> Exists:
    """Ask, in a query on tasks, whether nothing carries on the run of a task any more."""
    return Exists(TaskRun.objects.filter(is_gone(now), pk=OuterRef("running_run")))


def gone_since(run: TaskRun, now: datetime) -> datetime | None:
    """Return the last sign of life of the process of a run, ``None`` while it lives."""
    if run.outcome != Outcome.RUNNING:
        return None
    if run.reservation is not None:
        until: datetime | None = run.reserved_until
        return None if until is None or until > now else until
    instance = run.instance
    if instance is None:
        return last_sign_of_life(run)
    if instance.stopped_at is None and instance.heartbeat_at > silent_since(now):
        return None
    return last_sign_of_life(run)


def last_sign_of_life(run: TaskRun) -> datetime | None:
    """Return when the process of a run was heard of last, no earlier than the run began."""
    heard = None if run.instance is None else run.instance.mute_since or run.instance.heartbeat_at
    signs: list[datetime] = [each for each in (run.started_at, heard) if each is not None]
    return max(signs, default=None)


def shown_outcome(run: TaskRun, now: datetime) -> str:
    """Return the outcome of a run for people: a run of a dead process is interrupted."""
    return run.outcome if gone_since(run, now) is None else Outcome.INTERRUPTED


def shown_end(run: TaskRun, now: datetime) -> datetime | None:
    """Return the end of a run for people: that of an interrupted run is the last sign of life.

    A scheduler finds a dead process later, and ``finished_at`` is when it did.
    """
    gone = gone_since(run, now)
    return end_of(run.outcome, run.finished_at, run.detail) if gone is None else gone


def with_outcome(runs: QuerySet[TaskRun], outcome: str, now: datetime) -> QuerySet[TaskRun]:
    """Keep the runs of which ``shown_outcome`` returns an outcome."""
    if outcome not in (Outcome.RUNNING, Outcome.INTERRUPTED):
        return runs.filter(outcome=outcome)
    # Few runs are in progress, so their keys are cheaper than a join over the whole history.
    gone = list(runs.order_by().filter(is_gone(now)).values_list("pk", flat=True))
    if outcome == Outcome.RUNNING:
        return runs.filter(outcome=outcome).exclude(pk__in=gone)
    return runs.filter(Q(outcome=outcome) | Q(pk__in=gone))


def end_of(outcome: str, finished_at: datetime | None, detail: object) -> datetime | None:
    """Return the end of a run from its columns, without asking for its process."""
    if outcome != Outcome.INTERRUPTED or not isinstance(detail, dict):
        return finished_at
    return _instant(detail.get(ALIVE_UNTIL)) or finished_at


def _instant(text: object) -> datetime | None:
    try:
        found = parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is None or found.tzinfo is not None else None


def status_query(status: Status, now: datetime) -> Q:
    """Return the query expression for tasks with a status, as ``core.status`` computes it."""
    earlier = Q()
    for word, query in _queries(now):
        if word is status:
            return earlier & query
        earlier &= ~query
    raise LookupError(status)


def status_word(now: datetime) -> Case:
    """Return the query expression for each task's ``core.status``."""
    # The last word is for all other tasks, so it needs no condition.
    *queries, (other, _everything) = _queries(now)
    whens = [When(query, then=Value(str(word))) for word, query in queries]
    return Case(*whens, default=Value(str(other)), output_field=CharField())


def urgency(now: datetime) -> Case:
    """Return, for a query on tasks, a rank by which tasks that need attention come first.

    First come broken tasks, then overdue ones, then failing ones. Runs are not read.
    """
    is_paused = Q(paused_since__isnull=False) & (Q(paused_until=None) | Q(paused_until__gt=now))
    is_resting = Q(running_run=None) & (Q(enabled=False) | is_paused)
    is_failing = Q(failures__gt=0) | Q(pending_retry_until__isnull=False)
    return Case(
        When(~Q(broken_reason=""), then=Value(0)),
        When(is_resting, then=Value(3)),
        When(Q(running_run=None) & _is_overdue(now), then=Value(1)),
        When(is_failing, then=Value(2)),
        default=Value(3),
        output_field=IntegerField(),
    )


def _is_overdue(now: datetime) -> Q:
    late = now - LATE
    return (
        Q(next_run_at__isnull=False, next_run_at__lt=late)
        | Q(pending_retry_until__isnull=False, pending_retry_until__lt=late)
        | Q(run_requested_at__isnull=False, run_requested_at__lt=late)
    )


def next_start_at() -> Case:
    """Return ``core.next_run.next_start`` of each task as a query expression; change both."""
    paused = Q(paused_since__isnull=False)
    retry = Case(
        When(paused & Q(paused_until__gt=F("pending_retry_until")), then=F("paused_until")),
        default=F("pending_retry_until"),
        output_field=InstantField(),
    )
    comes_first = Q(next_run_at=None) | Q(next_run_at__gte=retry)
    comes_first |= Q(declaration__overlap_policy__in=sorted(QUEUEING))
    rests = ~Q(broken_reason="") | Q(enabled=False) | (paused & Q(paused_until=None))
    return Case(
        When(rests, then=Value(None)),
        When(Q(pending_retry_until__isnull=False) & comes_first, then=retry),
        default=F("next_run_at"),
        output_field=InstantField(null=True),
    )


def waits_for_a_worker() -> Exists:
    """Ask, in a query on tasks, whether no external worker has fetched the run of a task yet."""
    return Exists(TaskRun.objects.filter(pk=OuterRef("running_run"), outcome=Outcome.WAITING))


def _queries(now: datetime) -> list[tuple[Status, Q]]:
    ends = Q(enabled=True, paused_since__isnull=False, paused_until__isnull=False)
    return [
        (Status.BROKEN, ~Q(broken_reason="")),
        (Status.INTERRUPTED, Q(running_run__isnull=False) & Q(is_interrupted(now))),
        (Status.RUNNING, Q(running_run__isnull=False) & ~Q(waits_for_a_worker())),
        (Status.QUEUED, Q(running_run__isnull=False)),
        (Status.DISABLED, Q(enabled=False)),
        (Status.PAUSED, Q(paused_since__isnull=False, paused_until=None)),
        (Status.PAUSED_UNTIL, ends & Q(paused_until__gt=now)),
        (Status.OVERDUE, _is_overdue(now)),
        (Status.RETRYING, Q(pending_retry_until__isnull=False)),
        (Status.ACTIVE, Q()),
    ]


MOST = 100
"""How many instances are looked at; a deployment has a handful."""

SCHEDULES = ~Q(digest="")
"""Keeps the processes that can lead: those of foreground runs and workers hold no set."""


@dataclass(frozen=True, slots=True)
class Attendance:
    """The schedulers of a deployment; processes that only run tasks are left out.

    Args:
        now: the database's time.
        state: the row of the deployment, with its leader and the active registration set.
        present: instances that have not stopped, the newest heartbeat first.
        last: the instance that was heard of last, ``None`` where none ever was.
    """

    now: datetime
    state: SchedulerState
    present: tuple[SchedulerInstance, ...]
    last: SchedulerInstance | None

    def age(self, instance: SchedulerInstance) -> timedelta:
        """Return how long ago an instance spoke for itself, by the database's clock.

        One that its watchdog process vouches for lives, and cannot work.
        """
        spoke: datetime = instance.mute_since or instance.heartbeat_at
        return max(self.now - spoke, timedelta(0))

    def heard(self, within: timedelta) -> Sequence[SchedulerInstance]:
        return [each for each in self.present if self.age(each) <= within]

    def living_leader(self, within: timedelta) -> SchedulerInstance | None:
        """Return the leader if it was heard of lately."""
        return next((each for each in self.heard(within) if each.pk == self.state.leader_id), None)

    @property
    def silence(self) -> float:
        """Return the seconds since any scheduler was heard of, also of those that have stopped."""
        if self.present:
            return min(map(self.age, self.present)).total_seconds()
        if self.last is None or gave_up(self.last):
            return 0.0
        silence: timedelta = self.now - self.last.heartbeat_at
        return max(silence.total_seconds(), 0.0)

    def leaderless(self) -> float | None:
        """Return the seconds for which nobody has led, ``None`` where somebody does."""
        leader, expires_at = self.state.leader_id, self.state.lease_expires_at
        if expires_at is None:
            return self.silence
        is_led = leader is not None and expires_at > self.now
        return None if is_led else (self.now - expires_at).total_seconds()


def gave_up(instance: SchedulerInstance) -> bool:
    return bool(instance.heartbeat_at <= LONG_AGO)


def attendance(using: str, deployment: str, database_time: BaseExpression) -> Attendance | None:
    """Return the schedulers of a deployment, ``None`` where it is unknown.

    One query is enough while any scheduler has not stopped.
    """
    known = SchedulerInstance.objects.using(using).filter(
        SCHEDULES, scheduler__deployment=deployment
    )
    newest = known.defer("lapses").select_related("scheduler").order_by("-heartbeat_at")
    living = newest.filter(stopped_at=None, heartbeat_at__gt=LONG_AGO)
    present: tuple[Any, ...] = tuple(living.annotate(database_now=database_time)[:MOST])
    state: Any = present[0].scheduler if present else None
    if not present:
        states = SchedulerState.objects.using(using).filter(deployment=deployment)
        state = states.annotate(database_now=database_time).first()
        if state is None:
            return None
    return Attendance(
        now=(present[0] if present else state).database_now,
        state=state,
        present=present,
        last=present[0] if present else newest.first(),
    )


def overdue_tasks(using: str, deployment: str, now: datetime) -> QuerySet[ScheduledTask]:
    """Return the tasks that wait for a start for longer than they should."""
    tasks = ScheduledTask.objects.using(using).filter(scheduler__deployment=deployment)
    return tasks.filter(status_query(Status.OVERDUE, now)).order_by()
