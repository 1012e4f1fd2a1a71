"""Whether the process of a run is gone before any scheduler has noticed; nothing is written here.

Without a leader nobody ends the runs of a dead process, so that pages and commands have to look
at the heartbeat themselves.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Case, CharField, Exists, F, OuterRef, Q, Value, When
from django.utils.dateparse import parse_datetime

from ..conf import options
from ..core.events.runs import LATE
from ..core.status import Status
from ..fields import InstantField
from ..models import Outcome, TaskRun

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


def end_of(outcome: str, finished_at: datetime | None, detail: object) -> datetime | None:
    """Return the end of a run from its columns, without asking for its process."""
    if outcome != Outcome.INTERRUPTED or not isinstance(detail, dict):
        return finished_at
    return _instant(detail.get(ALIVE_UNTIL)) or finished_at


def _instant(text: object) -> datetime | None:
    try:
        return parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        return None


def status_query(status: Status, now: datetime) -> Q:
    """Say in a query what ``core.status`` says of one task."""
    earlier = Q()
    for word, query in _queries(now):
        if word is status:
            return earlier & query
        earlier &= ~query
    raise LookupError(status)


def status_word(now: datetime) -> Case:
    """Give, in a query on tasks, the word that ``core.status`` says of each."""
    # The last word is for what is left, so it needs no condition.
    *queries, (other, _everything) = _queries(now)
    whens = [When(query, then=Value(str(word))) for word, query in queries]
    return Case(*whens, default=Value(str(other)), output_field=CharField())


def next_start_at() -> Case:
    """Give, in a query on tasks, the instant that ``core.next_start`` gives for each."""
    paused = Q(paused_since__isnull=False)
    retry = Case(
        When(paused & Q(paused_until__gt=F("pending_retry_until")), then=F("paused_until")),
        default=F("pending_retry_until"),
        output_field=InstantField(),
    )
    comes_first = Q(next_run_at=None) | Q(next_run_at__gte=retry)
    comes_first |= Q(declaration__overlap_policy="enqueue")
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
    late = now - LATE
    overdue = (
        Q(next_run_at__isnull=False, next_run_at__lt=late)
        | Q(pending_retry_until__isnull=False, pending_retry_until__lt=late)
        | Q(run_requested_at__isnull=False, run_requested_at__lt=late)
    )
    ends = Q(enabled=True, paused_since__isnull=False, paused_until__isnull=False)
    return [
        (Status.BROKEN, ~Q(broken_reason="")),
        (Status.INTERRUPTED, Q(running_run__isnull=False) & Q(is_interrupted(now))),
        (Status.RUNNING, Q(running_run__isnull=False) & ~Q(waits_for_a_worker())),
        (Status.WAITS_FOR_A_WORKER, Q(running_run__isnull=False)),
        (Status.DISABLED, Q(enabled=False)),
        (Status.PAUSED, Q(paused_since__isnull=False, paused_until=None)),
        (Status.PAUSED_UNTIL, ends & Q(paused_until__gt=now)),
        (Status.OVERDUE, overdue),
        (Status.RETRYING, Q(pending_retry_until__isnull=False)),
        (Status.ACTIVE, Q()),
    ]
