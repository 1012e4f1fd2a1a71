"""The processes that run tasks."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..models import SchedulerInstance, TaskRun
from ..runtime.clock import system_clock
from ..store.status import gave_up
from . import backlog, formats, marks, story
from .absence import AttendedAdmin
from .notifying import NotifyingAdmin
from .readonly import NOTHING, Columns, HistoryPaginator, instant, labelled
from .standing import Standing, standing_of

_RUNS_SHOWN = 100


@admin.display(description=_("scheduler"), ordering="host")
def process(instance: SchedulerInstance) -> str:
    """Show host and process id, and the release where the project says one."""
    if not instance.release:
        return str(instance)
    return format_html('{}<span class="ddc-more">{}</span>', str(instance), instance.release)


@admin.display(description=_("standing"))
def standing(instance: SchedulerInstance) -> SafeString:
    """Show what the process is to its deployment, or how it ended."""
    return marks.standing(standing_of(instance, instance.database_now))  # type: ignore[attr-defined]


@admin.display(description=_("last heartbeat"), ordering="heartbeat_at")
def heartbeat(instance: SchedulerInstance) -> str:
    """Show how long ago the newest heartbeat was by the database's clock, and when."""
    if gave_up(instance):
        return NOTHING
    silence = instance.database_now - instance.heartbeat_at  # type: ignore[attr-defined]
    age = formats.span(timedelta(seconds=max(round(silence.total_seconds()), 0)))
    ago = gettext("%(age)s ago") % {"age": age} if instance.stopped_at is None else ""
    return format_html(
        '{}<span class="ddc-more">{}</span>', ago, formats.moment(instance.heartbeat_at)
    )


@admin.display(description=_("running"))
def running(instance: SchedulerInstance) -> str:
    """Show how many runs of the process have not ended."""
    return str(instance.running or NOTHING)  # type: ignore[attr-defined]


@admin.display(description=_("since"), ordering="started_at")
def since(instance: SchedulerInstance) -> str:
    """Show since when the process leads, or since when it is there."""
    state = instance.scheduler
    leads = standing_of(instance, instance.database_now) is Standing.LEADS  # type: ignore[attr-defined]
    return formats.moment((leads and state.led_since) or instance.started_at)


started = instant(SchedulerInstance, "started_at")
initialized = instant(SchedulerInstance, "initialized_at")
mute = instant(SchedulerInstance, "mute_since")
stop_requested = instant(SchedulerInstance, "stop_requested_at")
stopped = instant(SchedulerInstance, "stopped_at")


class SchedulerInstanceAdmin(NotifyingAdmin):
    """Show who schedules, who leads, when each was last heard of and how it ended."""

    list_display: Columns = [
        process,
        standing,
        *map(labelled, (heartbeat, running, since, stop_requested, stopped)),
    ]
    list_select_related = ["scheduler"]
    # Whoever has not ended comes first.
    ordering = [F("stopped_at").desc(nulls_first=True), "-heartbeat_at"]
    search_fields = ["host", "release"]
    paginator = HistoryPaginator
    fields: ClassVar[Columns] = [
        standing,
        since,
        "host",
        "pid",
        "release",
        started,
        initialized,
        heartbeat,
        mute,
        running,
        stop_requested,
        stopped,
        "id",
        "digest",
    ]
    change_list_template = "admin/django_declarative_cron/schedulerinstance/change_list.html"
    change_form_template = "admin/django_declarative_cron/schedulerinstance/change_form.html"

    class Media:
        js = ["django_declarative_cron/live.js"]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, with what stands above it."""
        # Called by the template, so not before it is known that the user may see the list.
        context = {"backlog": backlog.shown, "renews": True}
        context |= {"channels": partial(self.channels, request)}
        return super().changelist_view(request, context | (extra_context or {}))

    def get_queryset(self, request: HttpRequest) -> QuerySet[SchedulerInstance]:
        """Ask for what the page shows, and for no more."""
        open_runs = TaskRun.objects.filter(
            scheduler=OuterRef("scheduler"), instance=OuterRef("pk"), running_slot__isnull=False
        )
        counted = open_runs.order_by().values("instance").annotate(found=Count("pk"))
        rows: QuerySet[SchedulerInstance] = super().get_queryset(request)
        return (
            rows.select_related("scheduler")
            .defer("lapses")
            .annotate(
                database_now=system_clock.database_time(),
                running=Coalesce(Subquery(counted.values("found")), 0),
            )
        )

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return what the page adds to the row."""
        runs = TaskRun.objects.filter(
            scheduler=row.scheduler_id, instance=row.pk, running_slot__isnull=False
        )
        newest = runs.select_related("instance").defer(*story.LONG).order_by("-id")
        now = system_clock.now()
        return {"runs": [_line(self, request, run, now) for run in newest[:_RUNS_SHOWN]]}


def _line(page: AttendedAdmin, request: HttpRequest, run: TaskRun, now: datetime) -> dict[str, Any]:
    return {"task": run.task_name, "line": story.run_line(page, request, run, now)}
