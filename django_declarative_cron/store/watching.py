"""What notifications and metrics need of the rows, in a few queries; nothing is written here."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Max, QuerySet
from django.db.models.expressions import BaseExpression

from ..core.status import Status
from ..models import Outcome, ScheduledTask, SchedulerInstance, SchedulerState, TaskRun
from . import overview
from .attendance import MOST as MOST_INSTANCES
from .attendance import SCHEDULES, spoke_at
from .backlog import Backlog, Clock, undelivered
from .guard import LONG_AGO
from .status import next_start_at, status_query

MOST = 1000
"""How many failing or overdue tasks are looked at."""


@dataclass(frozen=True, slots=True)
class Lead:
    """Who leads a deployment.

    Args:
        now: the database's time.
        term: of the lead.
        leader: instance that leads, if any.
        expires_at: when its lease ends, or ended.
        present: schedulers that have not stopped, with the seconds since each spoke for itself.
        silence: seconds since any scheduler was heard of, also of those that have stopped.
    """

    now: datetime
    term: int
    leader: UUID | None
    expires_at: datetime | None
    present: dict[UUID, float]
    silence: float = 0.0

    def leaderless(self) -> float | None:
        """Give the seconds for which nobody has led, ``None`` where somebody does."""
        if self.leader is not None and self.expires_at is not None and self.expires_at > self.now:
            return None
        if self.expires_at is None:
            return self.silence
        return (self.now - self.expires_at).total_seconds()


@dataclass(frozen=True, slots=True)
class Troubles:
    """Tasks that need somebody.

    Args:
        failing: how often in a row the newest runs failed.
        overdue: since when a start has been due.
    """

    failing: dict[str, int] = field(default_factory=dict)
    overdue: dict[str, datetime | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counts:
    """What the rows say in numbers.

    Args:
        lead: who leads.
        by_status: tasks by their status word.
        by_outcome: what ended within an hour, by outcome.
        events: the backlog of the outbox, ``None`` without a sink.
        tasks: rows of tasks, with what is known of each.
        gone: of the tasks that were asked for by name, those that are not there any more.
    """

    lead: Lead
    by_status: dict[Status, int]
    by_outcome: dict[str, int]
    events: Backlog | None
    tasks: list[ScheduledTask]
    gone: frozenset[str] = frozenset()


def lead_of(using: str, deployment: str, database_time: BaseExpression) -> Lead | None:
    """Look who leads, in two queries, three where all have stopped.

    ``None`` where no scheduler ever came.

    Args:
        using: database alias.
        deployment: its name.
        database_time: expression of the database's time.
    """
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    state = states.annotate(database_now=database_time).first()
    if state is None:
        return None
    known = SchedulerInstance.objects.using(using).filter(
        SCHEDULES, scheduler=state, heartbeat_at__gt=LONG_AGO
    )
    now = state.database_now
    newest = (
        known.filter(stopped_at=None).defer("lapses").order_by("-heartbeat_at")[:MOST_INSTANCES]
    )
    present = {each.pk: max((now - spoke_at(each)).total_seconds(), 0.0) for each in newest}
    silence = min(present.values(), default=None)
    if silence is None:
        # Who stopped properly has left nothing else that says when.
        last = known.aggregate(last=Max("heartbeat_at"))["last"] or now
        silence = max((now - last).total_seconds(), 0.0)
    return Lead(now, state.term, state.leader_id, state.lease_expires_at, present, silence)


def troubles_of(using: str, deployment: str, now: datetime) -> Troubles:
    """Look which tasks fail and which are overdue, in two queries.

    Args:
        using: database alias.
        deployment: its name.
        now: the instant of looking.
    """
    tasks = ScheduledTask.objects.using(using).filter(scheduler__deployment=deployment)
    failing = tasks.filter(failures__gt=0).order_by().values_list("name", "failures")[:MOST]
    late = tasks.filter(status_query(Status.OVERDUE, now)).order_by()
    return Troubles(dict(failing), dict(late.values_list("name", "next_run_at")[:MOST]))


def errors_of(using: str, deployment: str, names: Collection[str]) -> dict[str, str]:
    """Give the error of the newest failed run of tasks, in two queries.

    Args:
        using: database alias.
        deployment: its name.
        names: of tasks.
    """
    if not names:
        return {}
    runs = TaskRun.objects.using(using).filter(
        scheduler__deployment=deployment, task_name__in=list(names), outcome__in=overview.WENT_WRONG
    )
    newest = runs.order_by().values("task_name").annotate(newest=Max("id")).values("newest")
    found = TaskRun.objects.using(using).filter(
        pk__in=list(newest.values_list("newest", flat=True))
    )
    return dict(found.values_list("task_name", "error"))


def _with_next_start(tasks: QuerySet[ScheduledTask]) -> QuerySet[ScheduledTask]:
    """Ask for the next start too, and not for the long columns."""
    return tasks.annotate(next_start_at=next_start_at()).defer("declaration", "description")


def counts_of(
    using: str,
    deployment: str,
    now: datetime,
    clock: Clock,
    most: int,
    asked: Collection[str] = (),
) -> Counts | None:
    """Count what is there, in half a dozen queries; ``None`` where no scheduler ever came.

    Args:
        using: database alias.
        deployment: its name.
        now: the instant of looking.
        clock: gives the expression of the database's time.
        most: of how many tasks the rows are given.
        asked: names of tasks of which it is asked whether they are still there.
    """
    lead = lead_of(using, deployment, clock.database_time())
    if lead is None:
        return None
    tasks = ScheduledTask.objects.using(using).filter(scheduler__deployment=deployment)
    ended = TaskRun.objects.using(using).filter(
        scheduler__deployment=deployment,
        outcome__in=[each for each in Outcome.values if each not in ("running", "waiting")],
        finished_at__gte=lead.now - overview.DAY / 24,
    )
    by_outcome = dict(ended.order_by().values_list("outcome").annotate(found=Count("pk")))
    there = tasks.filter(name__in=asked).values_list("name", flat=True) if asked else []
    return Counts(
        lead=lead,
        by_status=overview.tally(tasks, now),
        by_outcome={each: by_outcome.get(each, 0) for each in Outcome.values},
        events=undelivered(using, deployment, clock),
        tasks=list(_with_next_start(tasks).order_by("name")[:most]),
        gone=frozenset(asked).difference(there),
    )
