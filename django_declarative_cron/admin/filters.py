"""Filters of the lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from ..core.status import Status
from ..models import ScheduledTask, TaskRun
from ..runtime.clock import system_clock
from ..store.status import status_query
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


class ReasonFilter(admin.SimpleListFilter):
    """Filter runs by a known reason; asking a long history for its reasons would read all of it."""

    title = _("reason")
    parameter_name = "reason"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        return list(REASON_WORDS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[TaskRun]) -> QuerySet[TaskRun]:
        wanted = self.value()
        return queryset.filter(reason=wanted) if wanted else queryset
