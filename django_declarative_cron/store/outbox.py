"""The outbox: what other programs are to hear of a transaction, written in it.

Nothing is written where no ``EVENT_SINK`` is configured. The rows of a deployment are written
under its lock, so that the order of their ids is the order of what happened.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from .. import conf
from ..core import events
from ..core.declaration import DEFAULT_QUEUE
from ..core.envelope import TELLING, envelopes
from ..core.events import Event, Facts, TaskEvent
from ..core.runners import EXTERNAL
from ..core.sink import Sink
from ..models import OutboxEvent, Outcome, ScheduledTask, TaskRun
from ..signals import is_heard_outside, report
from . import bulk
from .guard import Locked
from .job_names import name_of


def tell(
    held: Locked,
    using: str,
    told: Iterable[Event],
    tasks: Iterable[ScheduledTask],
    runs: Iterable[TaskRun] = (),
    starts: Iterable[events.TaskRunStarted] = (),
) -> list[Event]:
    """Give events the facts that other programs ask for, and keep them for the sink.

    Where nobody outside is told, nobody asks for facts: the events get the ids of runs only.

    Args:
        held: the locked row of the deployment.
        using: database alias.
        told: events of this transaction, in causal order; those that have their facts were
            told before.
        tasks: rows of the tasks they are about.
        runs: rows of the runs that ended, or began to wait.
        starts: the starts among the events, with the ids of their runs.
    """
    told = list(told)
    if not any(map(_is_fresh, told)):
        return told
    sink = conf.event_sink()
    if sink is None and not is_heard_outside():
        named = _Named(runs, starts)
        return [named.name(event) for event in told]
    runs = [*runs, *_runs_named(using, told, with_blocking=sink is not None)]
    teller = _Teller(held, sink, tasks, runs, starts)
    told = [teller.tell(event) if _is_fresh(event) else event for event in told]
    if sink is not None:
        bulk.insert(using, _rows(held, sink, teller.told))
    return told


def recall(
    held: Locked, starts: Iterable[events.TaskRunStarted], tasks: Iterable[ScheduledTask]
) -> list[Any]:
    """Give starts their facts that were kept for the sink when they were committed.

    Args:
        held: the locked row of the deployment.
        starts: with the ids of their runs.
        tasks: rows of the tasks they are about.
    """
    teller = _Teller(held, conf.options().EVENT_SINK, tasks, (), ())
    return [teller.tell(start) for start in starts]


def _is_fresh(event: Event) -> bool:
    return isinstance(event, TELLING) and event.facts is None


def _runs_named(using: str, told: Iterable[Event], *, with_blocking: bool) -> list[TaskRun]:
    """Give the rows of runs that events only name; mostly none does."""
    named = {e.run for e in told if isinstance(e, events.TaskRunCancelRequested) and e.waits}
    skipped = [event for event in told if isinstance(event, events.TaskSkipped)]
    if with_blocking:
        named |= {event.blocked_by for event in skipped if event.blocked_by is not None}
    if not named:
        return []
    rows = TaskRun.objects.using(using).filter(pk__in=named)
    return list(rows.only("scheduled_for", "attempt", "task_name", "outcome"))


class _Named:
    """Know the ids of the runs that events tell of, which a decision does not."""

    def __init__(self, runs: Iterable[TaskRun], starts: Iterable[events.TaskRunStarted]) -> None:
        # Of a task, one run starts in a transaction at most.
        self._starts = {start.task_name: start for start in starts}
        self._waiting = {
            (run.task_name, run.scheduled_for): run.pk
            for run in runs
            if run.outcome == Outcome.WAITING
        }

    def name(self, event: Any) -> Any:
        """Give an event the id of the run that it begins, or lets wait."""
        if isinstance(event, events.TaskRunStarted):
            return self._starts.get(event.task_name, event)
        if isinstance(event, events.TaskRunWaiting):
            return event.but(run=self._waiting.get((event.task_name, event.scheduled_time)))
        return event


class _Teller:
    """Add facts to events, from the rows at hand."""

    def __init__(
        self,
        held: Locked,
        sink: Sink | None,
        tasks: Iterable[ScheduledTask],
        runs: Iterable[TaskRun],
        starts: Iterable[events.TaskRunStarted],
    ) -> None:
        self._deployment = held.row.identifier
        self._source = (sink and sink.source) or f"urn:uuid:{held.row.identifier}"
        self._tasks = {task.name: task for task in tasks}
        self._runs = {run.pk: run for run in runs}
        self.told: list[TaskEvent] = []
        self._named = _Named(self._runs.values(), starts)

    def tell(self, event: Any) -> TaskEvent:
        """Give an event with its facts, and keep it."""
        event = self._named.name(event)
        self.told.append(event.but(facts=self._facts(event)))
        return self.told[-1]

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
    options = task.declaration if isinstance(task.declaration, dict) else {}
    return {
        "cron": task.cron,
        "timezone": task.timezone,
        "job_type": task.callback,
        "queue": options.get("queue") or DEFAULT_QUEUE,
        "offered": options.get("runner") == EXTERNAL,
        "run_count": task.run_count + task.waiting,
    }


def _rows(held: Locked, sink: Sink, told: Iterable[TaskEvent]) -> Iterator[OutboxEvent]:
    for event in told:
        try:
            yield from _rows_of(held, sink, event)
        except Exception as error:
            # Values of a damaged row: no task waits for what others are told of it.
            report("Telling other programs of an event", error, "it is not told")


def _rows_of(held: Locked, sink: Sink, event: TaskEvent) -> list[OutboxEvent]:
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
