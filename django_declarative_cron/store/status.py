"""The status words of ``core.status`` as conditions of a query."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Case, CharField, Exists, F, OuterRef, Q, Value, When

from ..core.events.runs import LATE
from ..core.status import Status
from ..fields import InstantField
from ..models import Outcome, TaskRun
from .liveness import is_interrupted


def status_query(status: Status, now: datetime) -> Q:
    """Say in a query what ``core.status`` says of one task.

    Args:
        status: the word wanted.
        now: the instant of looking.
    """
    earlier = Q()
    for word, query in _queries(now):
        if word is status:
            return earlier & query
        earlier &= ~query
    raise LookupError(status)


def status_word(now: datetime) -> Case:
    """Give, in a query on tasks, the word that ``core.status`` says of each.

    Args:
        now: the instant of looking.
    """
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
