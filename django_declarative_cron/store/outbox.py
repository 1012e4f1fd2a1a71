"""The outbox: events for other programs, written in the transaction that causes them.

Nothing is written where no ``EVENT_SINK`` is configured. The rows of a deployment are written
under its lock, so that the order of their ids is the order of the events.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Max, Min, Q, QuerySet, Value
from django.db.models.expressions import BaseExpression
from django.db.models.functions import Coalesce

from .. import conf
from ..conf import job_keys
from ..core import events
from ..core.declarations.declaration import DEFAULT_QUEUE
from ..core.declarations.runners import EXTERNAL
from ..core.event_sink import SOURCES, Sink, envelopes
from ..core.events import Event, Facts, TaskEvent
from ..core.http_api import job_id, run_of
from ..fields import InstantField
from ..models import OutboxEvent, Outcome, ScheduledTask, SchedulerState, TaskRun
from ..signals import is_sent_outside, report
from . import database
from .guard import LockedDeployment, Member, read_state
from .rows import options_of


def tell(
    held: LockedDeployment,
    told: Iterable[Event],
    tasks: Iterable[ScheduledTask],
    runs: Iterable[TaskRun] = (),
    starts: Iterable[events.TaskRunStarted] = (),
) -> list[Event]:
    """Add the facts for other programs to events, and store these for the sink.

    Without a sink, no facts are needed: the events get the ids of runs only.
    """
    told = list(told)
    if not any(map(_is_fresh, told)):
        return told
    sink = conf.options().EVENT_SINK
    if sink is None and not is_sent_outside():
        return list(map(_Enricher(held, None, (), runs, starts).name, told))
    runs = [*runs, *_runs_named(held.using, told, with_blocking=sink is not None)]
    enricher = _Enricher(held, sink, tasks, runs, starts)
    told = [enricher.enrich(event) if _is_fresh(event) else event for event in told]
    if sink is not None:
        database.insert(held.using, _rows(held, sink, enricher.enriched))
    return told


def recall(
    held: LockedDeployment, starts: Iterable[events.TaskRunStarted], tasks: Iterable[ScheduledTask]
) -> list[Any]:
    """Add to starts the facts that were stored for the sink when they were committed."""
    enricher = _Enricher(held, conf.options().EVENT_SINK, tasks, (), ())
    return [enricher.enrich(start) for start in starts]


def _is_fresh(event: Event) -> bool:
    return isinstance(event, SOURCES) and event.facts is None


def _runs_named(using: str, told: Iterable[Event], *, with_blocking: bool) -> list[TaskRun]:
    """Return the rows of runs that events only name; mostly none does."""
    named = {e.run for e in told if isinstance(e, events.TaskRunCancelRequested) and e.waits}
    skipped = [event for event in told if isinstance(event, events.TaskSkipped)]
    if with_blocking:
        named |= {event.blocked_by for event in skipped if event.blocked_by is not None}
    rows = TaskRun.objects.using(using).filter(pk__in=named)
    return list(rows.only("scheduled_for", "attempt", "task_name", "outcome"))


class _Enricher:
    """Add ids and facts to events, from the rows at hand; a decision does not have them."""

    def __init__(
        self,
        held: LockedDeployment,
        sink: Sink | None,
        tasks: Iterable[ScheduledTask],
        runs: Iterable[TaskRun],
        starts: Iterable[events.TaskRunStarted],
    ) -> None:
        self._deployment = held.row.identifier
        self._source = (sink and sink.source) or f"urn:uuid:{held.row.identifier}"
        self._tasks = {task.name: task for task in tasks}
        self._runs = {run.pk: run for run in runs}
        # Of a task, one run starts in a transaction at most.
        self._starts = {start.task_name: start for start in starts}
        self._waiting = {
            (run.task_name, run.scheduled_for): run.pk
            for run in self._runs.values()
            if run.outcome == Outcome.WAITING
        }
        self.enriched: list[TaskEvent] = []

    def name(self, event: Any) -> Any:
        """Add to an event the id of the run that it starts or queues."""
        if isinstance(event, events.TaskRunStarted):
            return self._starts.get(event.task_name, event)
        if isinstance(event, events.TaskRunWaiting):
            return replace(event, run=self._waiting.get((event.task_name, event.scheduled_time)))
        return event

    def enrich(self, event: Any) -> TaskEvent:
        """Return an event with its facts, and keep it."""
        event = self.name(event)
        self.enriched.append(replace(event, facts=self._facts(event)))
        return self.enriched[-1]

    def _facts(self, event: Any) -> Facts:
        task = self._tasks.get(event.task_name)
        run = self._runs.get(getattr(event, "run", None) or 0)
        declared = {} if task is None else _declared(task)
        blocking = self._runs.get(getattr(event, "blocked_by", None) or 0)
        blocked_by = None
        if blocking is not None:
            blocked_by = name_of(blocking.pk, blocking.scheduled_for)
        due = getattr(event, "scheduled_time", None) if run is None else run.scheduled_for
        return Facts(
            deployment=self._deployment,
            source=self._source,
            job=name_of(getattr(event, "run", None), due),
            attempt=None if run is None else run.attempt,
            scheduled_time=None if run is None else run.scheduled_for,
            blocked_by=blocked_by,
            **declared,
        )


def _declared(task: ScheduledTask) -> dict[str, Any]:
    options = options_of(task)
    return {
        "cron": task.cron,
        "timezone": task.timezone,
        "job_type": task.callback,
        "queue": options.get("queue") or DEFAULT_QUEUE,
        "offered": options.get("runner") == EXTERNAL,
        "run_count": task.run_count + task.waiting,
    }


def _rows(held: LockedDeployment, sink: Sink, told: Iterable[TaskEvent]) -> Iterator[OutboxEvent]:
    for event in told:
        try:
            yield from _rows_of(held, sink, event)
        except Exception as error:
            # Values of a damaged row: they must not delay the task.
            report("Telling other programs of an event", error, "it is not told")


def _rows_of(held: LockedDeployment, sink: Sink, event: TaskEvent) -> list[OutboxEvent]:
    return [
        OutboxEvent(
            scheduler=held.row,
            event_id=envelope["id"],
            type=envelope["type"],
            task_name=event.task_name,
            # In ASCII, which every database keeps as it is.
            body=json.dumps(envelope, separators=(",", ":")),
            created_at=event.at,
        )
        for envelope in envelopes(event)
        if sink.wants(envelope["type"])
    ]


MOST = 400
"""The most events handed out at once."""

MOST_OF_ONE = 50
"""The most events of one task handed out at once."""

_ERROR = 500


@database.again_after_conflict
def take(
    member: Member, hold: timedelta, tasks: int, *, leaving: bool = False
) -> list[list[OutboxEvent]]:
    """Take events to deliver, those of one task in one list, oldest first."""
    # Looked for without a transaction, because mostly nothing is there.
    with database.direct(member.using):
        found = read_state(member)
        if found is None or not (leaving or found.leader_id == member.instance):
            return []
        now = found.database_now
        if not _waiting(member, found).exists():
            return []
    with database.atomic(member.using):
        heads = database.lockable(member.using, _due(_waiting(member, found), now).order_by("id"))
        mine = _with_followers(member, found, list(heads[:tasks]))
        held = OutboxEvent.objects.using(member.using).filter(pk__in=[row.pk for row in mine])
        held.update(claimed_by=member.instance, claimed_until=now + hold)
    return _by_task(mine)


def _waiting(member: Member, state: SchedulerState) -> QuerySet[OutboxEvent]:
    rows = OutboxEvent.objects.using(member.using)
    return rows.filter(scheduler=state, dead_lettered_at=None)


def _due(waiting: QuerySet[OutboxEvent], now: datetime) -> QuerySet[OutboxEvent]:
    """Return the oldest event of each task, as far as it may be tried now."""
    oldest = waiting.order_by().values("task_name").annotate(oldest=Min("id")).values("oldest")
    return waiting.filter(
        Q(claimed_until=None) | Q(claimed_until__lte=now),
        Q(next_attempt_at=None) | Q(next_attempt_at__lte=now),
        pk__in=oldest,
    )


def _with_followers(member: Member, state: Any, heads: list[OutboxEvent]) -> list[OutboxEvent]:
    """Add the events that wait behind the oldest ones: nobody else gets them."""
    if not heads:
        return []
    oldest = {head.task_name: head.pk for head in heads}
    behind = _waiting(member, state).filter(task_name__in=list(oldest), pk__gt=heads[0].pk)
    others = behind.exclude(pk__in=list(oldest.values())).order_by("id")
    return [*heads, *others[: max(MOST - len(heads), 0)]]


def _by_task(rows: list[OutboxEvent]) -> list[list[OutboxEvent]]:
    found: dict[str, list[OutboxEvent]] = {}
    for row in rows:
        found.setdefault(row.task_name, []).append(row)
    return [each[:MOST_OF_ONE] for each in found.values()]


@database.again_after_conflict
def give_back(
    member: Member,
    delivered: Collection[OutboxEvent],
    refused: Collection[tuple[OutboxEvent, str, timedelta]],
) -> None:
    """Delete delivered events, record refusals, and release all others.

    Events that another worker has taken meanwhile stay with it.
    """
    with database.atomic(member.using):
        found = read_state(member)
        if found is None:
            return
        mine = OutboxEvent.objects.using(member.using).filter(
            scheduler=found, claimed_by=member.instance
        )
        mine.filter(pk__in=[event.pk for event in delivered]).delete()
        for event, error, pause in refused:
            mine.filter(pk=event.pk).update(
                attempts=F("attempts") + 1,
                error=error[:_ERROR],
                refused_since=Coalesce("refused_since", Value(found.database_now, InstantField())),
                next_attempt_at=found.database_now + pause,
            )
        mine.update(claimed_by=None, claimed_until=None)


@database.again_after_conflict
def tidy(member: Member, give_up_after: timedelta, most: int) -> list[events.Event]:
    """Dead-letter events refused for too long, and drop the oldest if there are too many."""
    with database.atomic(member.using):
        found = read_state(member)
        if found is None or found.leader_id != member.instance:
            return []
        return [*_dead_letter(member, found, give_up_after), *_forget(member, found, most)]


def _dead_letter(member: Member, state: Any, give_up_after: timedelta) -> list[events.Event]:
    now = state.database_now
    poison = _waiting(member, state).filter(
        attempts__gt=0, refused_since__lt=now - give_up_after, claimed_by=None
    )
    rows = list(database.lockable(member.using, poison.order_by("id"))[:MOST])
    ours = OutboxEvent.objects.using(member.using).filter(pk__in=[row.pk for row in rows])
    if rows:
        ours.update(dead_lettered_at=now)
    return [
        events.EventDeadLettered(
            at=now,
            event_id=str(row.event_id),
            type=row.type,
            about=row.task_name,
            attempts=row.attempts,
            error=row.error,
        )
        for row in rows
    ]


def _forget(member: Member, state: Any, most: int) -> list[events.Event]:
    everything = OutboxEvent.objects.using(member.using).filter(scheduler=state)
    surplus = everything.count() - most
    if surplus <= 0:
        return []
    [newest] = everything.order_by("id").values_list("pk", flat=True)[surplus - 1 : surplus]
    everything.filter(pk__lte=newest).delete()
    return [events.EventsDropped(at=state.database_now, count=surplus, most=most)]


def requeue(using: str, deployment: str) -> int:
    """Requeue dead-lettered events, with as much time as new ones.

    Returns:
        how many there were.
    """
    rows = OutboxEvent.objects.using(using).filter(
        scheduler__deployment=deployment, dead_lettered_at__isnull=False
    )
    with database.atomic(using):
        found = list(rows.values_list("pk", flat=True))
        mine = OutboxEvent.objects.using(using).filter(pk__in=found)
        return mine.update(
            dead_lettered_at=None, next_attempt_at=None, refused_since=None, attempts=0
        )


def name_of(run: int | None, scheduled_for: datetime | None) -> UUID | None:
    """Return the name of a run, ``None`` if its row has too little data."""
    if run is None or scheduled_for is None:
        return None
    try:
        return job_id(run, scheduled_for, job_keys()[0])
    except ValueError:
        return None


def runs_of(name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the id of the row that a name may stand for, with each key that may have made it."""
    for key in job_keys():
        run = run_of(name, key)
        if run is not None:
            yield run, key


def is_name_of(name: str, run: int, scheduled_for: datetime, key: bytes) -> bool:
    return str(job_id(run, scheduled_for, key)) == name.lower()


@dataclass(frozen=True, slots=True)
class Backlog:
    """The undelivered events of a deployment.

    Args:
        waiting: events that are still to be delivered.
        refused: those of them that were refused at least once.
        dead_lettered: events that were refused for too long.
        oldest: when the oldest of the waiting ones happened.
        now: the database's time.
        error: the newest refusal there is, in one line.
    """

    waiting: int
    refused: int
    dead_lettered: int
    oldest: datetime | None
    now: datetime
    error: str

    @property
    def age(self) -> timedelta | None:
        """Return for how long the oldest has been waiting."""
        return None if self.oldest is None else max(self.now - self.oldest, timedelta(0))


def undelivered(using: str, deployment: str, database_time: BaseExpression) -> Backlog | None:
    """Count the waiting events, in two or three queries; in none without a sink.

    Returns:
        the backlog, ``None`` if events are not posted or no scheduler ever registered.
    """
    if not conf.posts_events():
        return None
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    state = states.annotate(database_now=database_time).first()
    if state is None:
        return None
    rows = OutboxEvent.objects.using(using).filter(scheduler=state)
    waits = Q(dead_lettered_at=None)
    found = rows.aggregate(
        waiting=Count("id", filter=waits),
        refused=Count("id", filter=waits & Q(attempts__gt=0)),
        dead_lettered=Count("id", filter=~waits),
        oldest=Min("created_at", filter=waits),
        newest_refused=Max("id", filter=~Q(error="")),
    )
    newest = found.pop("newest_refused")
    error = "" if newest is None else rows.values_list("error", flat=True).get(pk=newest)
    return Backlog(**found, now=state.database_now, error=error)
