"""Filters of the lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from django.contrib import admin
from django.db import connections
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
from ..store.status import status_query
from .formats import grouped
from .marks import REASON_WORDS, STATUS_WORDS

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

_NEWEST = 100_000
"""How many rows of the history are looked through for a reason."""

Lookups: TypeAlias = "list[tuple[str, str | _StrPromise]]"


class StatusFilter(admin.SimpleListFilter):
    """Filter tasks by the status word that the list shows."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        """Offer the choices."""
        return [(str(status), word) for status, word in STATUS_WORDS.items()]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ScheduledTask]
    ) -> QuerySet[ScheduledTask]:
        """Keep the rows of the chosen kind."""
        wanted = self.value()
        if wanted not in {str(status) for status in Status}:
            return queryset
        return queryset.filter(status_query(Status(wanted), system_clock.now()))


class PauseFilter(admin.SimpleListFilter):
    """Filter tasks by whether they rest, with or without an end."""

    title = _("pause")
    parameter_name = "paused"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        """Offer the choices."""
        return [("yes", _("Paused")), ("no", _("Not paused"))]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ScheduledTask]
    ) -> QuerySet[ScheduledTask]:
        """Keep the rows of the chosen kind."""
        now = system_clock.now()
        rests = status_query(Status.PAUSED, now) | status_query(Status.PAUSED_UNTIL, now)
        match self.value():
            case "yes":
                return queryset.filter(rests)
            case "no":
                return queryset.exclude(rests)
        return queryset


class LastOutcomeFilter(admin.SimpleListFilter):
    """Filter tasks by how their newest run ended."""

    title = _("last outcome")
    parameter_name = "last"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        """Offer the choices."""
        return list(Outcome.choices)

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ScheduledTask]
    ) -> QuerySet[ScheduledTask]:
        """Keep the rows of the chosen kind."""
        wanted = self.value()
        return last_outcome(queryset, wanted) if wanted else queryset


class FailedFilter(admin.SimpleListFilter):
    """Filter tasks of which a run went wrong lately."""

    title = _("failed")
    parameter_name = "failed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        """Offer the choices."""
        return [("day", _("within 24 hours"))]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ScheduledTask]
    ) -> QuerySet[ScheduledTask]:
        """Keep the rows of the chosen kind."""
        if self.value() != "day":
            return queryset
        return queryset.filter(failed_lately(options().DEPLOYMENT, system_clock.now()))


class AppFilter(admin.SimpleListFilter):
    """Filter tasks by the app whose code they run."""

    title = _("app")
    parameter_name = "app"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        """Offer the choices."""
        labels = {app_of(each.callback) for each in kinds_of(request, model_admin)}
        return [(label, label) for label in sorted(labels - {""})]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ScheduledTask]
    ) -> QuerySet[ScheduledTask]:
        """Keep the rows of the chosen kind."""
        wanted = self.value()
        return queryset.filter(callback__startswith=f"{wanted}.") if wanted else queryset


class TagFilter(admin.SimpleListFilter):
    """Filter tasks by the tags that they are declared with."""

    title = _("tag")
    parameter_name = "tag"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        """Offer the choices."""
        tags = {tag for each in kinds_of(request, model_admin) for tag in texts(each.tags)}
        return [(tag, tag) for tag in sorted(tags)]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ScheduledTask]
    ) -> QuerySet[ScheduledTask]:
        """Keep the rows of the chosen kind."""
        wanted = self.value()
        if not wanted:
            return queryset
        if connections[queryset.db].features.supports_json_field_contains:
            return queryset.filter(declaration__contains={"tags": [wanted]})
        stored = queryset.order_by().values_list("pk", "declaration__tags")
        return queryset.filter(pk__in=[pk for pk, tags in stored if wanted in texts(tags)])


class ZoneFilter(admin.SimpleListFilter):
    """Filter tasks by their time zone."""

    title = _("time zone")
    parameter_name = "timezone"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        """Offer the choices."""
        found = {each.timezone for each in kinds_of(request, model_admin)}
        zones = [zone for zone in found if isinstance(zone, str)]
        return [(zone, zone) for zone in sorted(zones)]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ScheduledTask]
    ) -> QuerySet[ScheduledTask]:
        """Keep the rows of the chosen kind."""
        wanted = self.value()
        return queryset.filter(timezone=wanted) if wanted else queryset


def app_of(callback: Any) -> str:
    """Return the package that a callback stands in, empty for what is no dotted path."""
    if not isinstance(callback, str):
        return ""
    package, dot, _rest = callback.partition(".")
    return package if dot and package.isidentifier() else ""


def kinds_of(request: HttpRequest, model_admin: Any) -> list[Kind]:
    """Return what tasks there are, asked for once for one page."""
    known: list[Kind] | None = getattr(request, "_ddc_kinds", None)
    if known is None:
        known = kinds(model_admin.get_queryset(request), system_clock.now())
        request._ddc_kinds = known  # type: ignore[attr-defined]
    return known


def texts(tags: Any) -> tuple[str, ...]:
    """Return the tags of a stored declaration, whatever stands there."""
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()


class ReasonFilter(admin.SimpleListFilter):
    """Filter runs by a known reason; no index is worth its cost for each run that is written."""

    title = format_lazy(_("reason, in the newest {number} rows"), number=grouped(_NEWEST))
    parameter_name = "reason"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Lookups:
        """Offer the choices."""
        return list(REASON_WORDS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[TaskRun]) -> QuerySet[TaskRun]:
        """Keep the rows of the chosen kind."""
        wanted = self.value()
        if not wanted:
            return queryset
        return queryset.filter(reason=wanted, pk__gt=_before_the_newest())


def _before_the_newest() -> Coalesce:
    keys = TaskRun.objects.order_by("-pk").values("pk")
    return Coalesce(Subquery(keys[_NEWEST : _NEWEST + 1]), 0)
