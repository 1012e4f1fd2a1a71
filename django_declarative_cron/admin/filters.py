"""Filters of the lists."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from ..core.status import LATE, Status
from ..models import ScheduledTask, TaskRun
from ..runtime.clock import system_clock
from .marks import REASON_WORDS, STATUS_WORDS

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

Lookups: TypeAlias = "list[tuple[str, str | _StrPromise]]"


class StatusFilter(admin.SimpleListFilter):
    """Filter tasks by the status word that the list shows."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        return [(str(status), word) for status, word in STATUS_WORDS.items()]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ScheduledTask]
    ) -> QuerySet[ScheduledTask]:
        wanted = self.value()
        if wanted not in {str(status) for status in Status}:
            return queryset
        return queryset.filter(status_query(Status(wanted), system_clock.now()))


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
        (Status.RUNNING, Q(running_run__isnull=False)),
        (Status.PAUSED, Q(enabled=False) | Q(paused_since__isnull=False, paused_until=None)),
        (Status.PAUSED_UNTIL, ends & Q(paused_until__gt=now)),
        (Status.OVERDUE, overdue),
        (Status.RETRYING, Q(pending_retry_until__isnull=False)),
        (Status.ACTIVE, Q()),
    ]


class ReasonFilter(admin.SimpleListFilter):
    """Filter runs by a known reason; asking a long history for its reasons would read all of it."""

    title = _("reason")
    parameter_name = "reason"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        return list(REASON_WORDS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[TaskRun]) -> QuerySet[TaskRun]:
        wanted = self.value()
        return queryset.filter(reason=wanted) if wanted else queryset
