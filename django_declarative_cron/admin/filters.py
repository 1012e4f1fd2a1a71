"""Filters of the lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from django.contrib import admin
from django.db.models import QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from ..conf import options
from ..core.status import Status
from ..models import Outcome, ScheduledTask, TaskRun
from ..runtime.clock import system_clock
from ..store.overview import Kind, failed_lately, kinds, last_outcome
from ..store.queries import tagged, texts
from ..store.status import status_query, with_outcome
from .badges import REASON_WORDS, STATUS_WORDS, grouped

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

    Tasks = QuerySet[ScheduledTask]
    Runs = QuerySet[TaskRun]

_NEWEST = 100_000
"""Number of rows that the filter by reason reads; an index would slow down every write."""

Lookups: TypeAlias = "list[tuple[str, str | _StrPromise]]"


class ChoiceFilter(admin.SimpleListFilter):
    """A filter of one of several values."""

    choices_of_values: ClassVar[Lookups] = []
    ignores_unknown: ClassVar[bool] = True

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        return self.choices_of_values

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value, known = self.value(), {str(choice) for choice, _word in self.lookup_choices}
        if not value or (self.ignores_unknown and value not in known):
            return queryset
        return self.narrow(queryset, value)

    def narrow(self, queryset: Any, value: str) -> Any:
        raise NotImplementedError


class StatusFilter(ChoiceFilter):
    title, parameter_name = _("status"), "status"
    choices_of_values = [(str(status), word) for status, word in STATUS_WORDS.items()]

    def narrow(self, queryset: Tasks, value: str) -> Tasks:
        return queryset.filter(status_query(Status(value), system_clock.now()))


class PauseFilter(ChoiceFilter):
    """Filter tasks by whether they are paused, with or without an end."""

    title, parameter_name = _("pause"), "paused"
    choices_of_values = [("yes", _("Paused")), ("no", _("Not paused"))]

    def narrow(self, queryset: Tasks, value: str) -> Tasks:
        now = system_clock.now()
        paused = status_query(Status.PAUSED, now) | status_query(Status.PAUSED_UNTIL, now)
        return queryset.filter(paused) if value == "yes" else queryset.exclude(paused)


class LastOutcomeFilter(ChoiceFilter):
    title, parameter_name = _("last outcome"), "last"
    choices_of_values = list(Outcome.choices)

    def narrow(self, queryset: Tasks, value: str) -> Tasks:
        return last_outcome(queryset, value)


class FailedFilter(ChoiceFilter):
    title, parameter_name = _("failure"), "failed"
    choices_of_values = [("now", _("in the last run")), ("day", _("within 24 hours"))]

    def narrow(self, queryset: Tasks, value: str) -> Tasks:
        if value == "now":
            return queryset.filter(failures__gt=0)
        return queryset.filter(failed_lately(options().DEPLOYMENT, system_clock.now()))


class KindFilter(ChoiceFilter):
    """A filter of the values that the tasks of the list have."""

    ignores_unknown = False

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        found = {value for kind in kinds_of(request, model_admin) for value in self.values(kind)}
        return [(value, value) for value in sorted(found)]

    def values(self, kind: Kind) -> Iterable[str]:
        raise NotImplementedError


class AppFilter(KindFilter):
    """Filter tasks by the app whose code they run."""

    title, parameter_name = _("app"), "app"

    def values(self, kind: Kind) -> Iterable[str]:
        package, dot, _rest = str(kind.callback).partition(".")
        return [package] if dot and package.isidentifier() else []

    def narrow(self, queryset: Tasks, value: str) -> Tasks:
        return queryset.filter(callback__startswith=f"{value}.")


class TagFilter(KindFilter):
    title, parameter_name = _("tag"), "tag"

    def values(self, kind: Kind) -> Iterable[str]:
        return texts(kind.tags)

    def narrow(self, queryset: Tasks, value: str) -> Tasks:
        return tagged(queryset, value)


class ZoneFilter(KindFilter):
    title, parameter_name = _("time zone"), "timezone"

    def values(self, kind: Kind) -> Iterable[str]:
        return [kind.timezone] if isinstance(kind.timezone, str) else []

    def narrow(self, queryset: Tasks, value: str) -> Tasks:
        return queryset.filter(timezone=value)


class OutcomeFilter(ChoiceFilter):
    """Filter runs by the outcome that the list shows."""

    title, parameter_name = _("outcome"), "outcome"
    choices_of_values = list(Outcome.choices)

    def narrow(self, queryset: Runs, value: str) -> Runs:
        return with_outcome(queryset, value, system_clock.now())


class ReasonFilter(ChoiceFilter):
    title = format_lazy(_("reason, in the newest {number} rows"), number=grouped(_NEWEST))
    parameter_name = "reason"
    choices_of_values = list(REASON_WORDS.items())

    def narrow(self, queryset: Runs, value: str) -> Runs:
        keys = TaskRun.objects.order_by("-pk").values("pk")
        before_the_newest = Coalesce(Subquery(keys[_NEWEST : _NEWEST + 1]), 0)
        return queryset.filter(reason=value, pk__gt=before_the_newest)


def kinds_of(request: HttpRequest, model_admin: Any) -> list[Kind]:
    """Return the kinds of tasks, read once for one request."""
    known: list[Kind] | None = getattr(request, "_ddc_kinds", None)
    if known is None:
        known = kinds(model_admin.get_queryset(request), system_clock.now())
        request._ddc_kinds = known  # type: ignore[attr-defined]
    return known
