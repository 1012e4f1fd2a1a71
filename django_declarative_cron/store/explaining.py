"""What is stored of a task around an instant, as facts for ``core.why``; nothing is written."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from ..core.facts import Facts, Pause, Row, Skip
from ..core.why import Why, why
from ..models import Outcome, ScheduledTask, TaskOverride, TaskRun
from . import rows
from .liveness import end_of, gone_since
from .reading import policy_of, read_schedule, skips_at

_MOST = 50
_MINUTE = timedelta(minutes=1)


def explain(
    task: ScheduledTask,
    now: datetime,
    at: datetime | None = None,
    *,
    is_attended: bool,
) -> Why:
    """Say why a task does or does not run, or did or did not at an instant.

    Args:
        task: its row.
        now: the instant of asking.
        at: the instant asked about, ``None`` for the present state.
        is_attended: a scheduler was heard of lately.
    """
    facts = facts_of(task, now, at, is_attended=is_attended)
    return why(facts, at)


def facts_of(
    task: ScheduledTask,
    now: datetime,
    at: datetime | None,
    *,
    is_attended: bool,
) -> Facts:
    """Collect what is stored, in a handful of queries.

    Args:
        task: its row.
        now: the instant of asking.
        at: the instant asked about, ``None`` for the present state.
        is_attended: a scheduler was heard of lately.
    """
    schedule, damage = read_schedule(task)
    runs = TaskRun.objects.filter(scheduler=task.scheduler_id, task_name=task.name)
    before = runs.filter(scheduled_for__lt=task.registered_at)
    state = rows.state_of(task)
    return Facts(
        now=now,
        state=state,
        schedule=schedule,
        problem=task.broken_reason or damage,
        enabled=task.enabled,
        is_attended=is_attended,
        rows=_present(runs, now) if at is None else _around(runs, at, now),
        pauses=_pauses(task, at or now),
        known_before=at is not None and at < task.registered_at and before.exists(),
        history_from=task.history_from,
        policy=policy_of(task),
        skip=_skip(task, now),
    )


def _skip(task: ScheduledTask, now: datetime) -> Skip | None:
    """Return the pending skip of an occurrence; one query, where there is one."""
    at = skips_at(task, now)
    if at is None:
        return None
    acts = TaskOverride.objects.filter(
        scheduler=task.scheduler_id,
        task_name=task.name,
        kind=TaskOverride.Kind.SKIP,
        ended_at=None,
    )
    act = acts.order_by("-id").first()
    return Skip(at, "" if act is None else act.author, "" if act is None else act.note)


def _present(runs: QuerySet[TaskRun], now: datetime) -> tuple[Row, ...]:
    ended = runs.filter(started_at__isnull=False, finished_at__isnull=False).order_by("-id")
    last = Q(pk=Subquery(ended.values("pk")[:1]))
    told = runs.filter(Q(outcome=Outcome.RUNNING) | Q(waits_in__isnull=False) | last)
    # However many wait, what runs is among those that are read.
    return _rows(told.order_by("outcome", "-id"), now)


def _around(runs: QuerySet[TaskRun], at: datetime, now: datetime) -> tuple[Row, ...]:
    minute = at.replace(second=0, microsecond=0)
    first = Coalesce("scheduled_from", "scheduled_for")
    near = runs.annotate(first=first).filter(
        Q(scheduled_for__gte=minute, first__lt=minute + _MINUTE)
        | Q(started_at__gte=minute, started_at__lt=minute + _MINUTE)
        | (Q(started_at__lte=at) & (Q(finished_at=None) | Q(finished_at__gte=minute)))
    )
    started = runs.filter(started_at__isnull=False)
    earlier = started.filter(finished_at__lte=at).order_by("-id")[:1]
    later = started.filter(started_at__gte=minute + _MINUTE).order_by("id")[:1]
    queries = (near.order_by("-id"), earlier, later)
    found = {row.key: row for query in queries for row in _rows(query, now)}
    return tuple(found[key] for key in sorted(found))


def _rows(runs: QuerySet[TaskRun], now: datetime) -> tuple[Row, ...]:
    long = ("traceback", "log", "result", "instance__lapses")
    found = runs.select_related("instance").defer(*long)[:_MOST]
    return tuple(_row(run, now) for run in found)


def _row(run: TaskRun, now: datetime) -> Row:
    detail: Any = run.detail if isinstance(run.detail, dict) else {}
    blocking = detail.get("blocked_by")
    return Row(
        key=run.pk,
        scheduled_for=run.scheduled_for,
        scheduled_from=run.scheduled_from,
        started_at=run.started_at,
        finished_at=end_of(run.outcome, run.finished_at, run.detail),
        outcome=run.outcome,
        reason=run.reason,
        attempt=run.attempt,
        error=str(detail.get("local_time", "")) or run.error.strip().partition("\n")[0],
        blocked_by=blocking if isinstance(blocking, int) else None,
        is_offered=run.waits_in is not None,
        gone_since=gone_since(run, now),
        **{key: str(detail.get(key, "")) for key in ("calendar", "author", "note")},
    )


def _pauses(task: ScheduledTask, at: datetime) -> tuple[Pause, ...]:
    acts = TaskOverride.objects.filter(
        scheduler=task.scheduler_id,
        task_name=task.name,
        kind=TaskOverride.Kind.PAUSE,
        created_at__lte=at,
    )
    return tuple(_pause(act) for act in acts.order_by("-id")[:_MOST])


def _pause(act: TaskOverride) -> Pause:
    ends = [end for end in (act.until, act.ended_at) if end is not None]
    return Pause(act.created_at, min(ends, default=None), act.author, act.note, act.reason)
