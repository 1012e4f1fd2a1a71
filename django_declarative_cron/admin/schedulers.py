"""The scheduler processes: their state, their runs, the event outbox and test messages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from ..conf import options
from ..models import SchedulerInstance, SchedulerState, TaskRun
from ..monitoring.channels import send_test_message
from ..runtime.clock import system_clock
from ..store import database
from ..store.outbox import Backlog, undelivered
from ..store.status import gave_up
from . import badges, task_detail
from .base import NOTHING, TEMPLATES, Columns, HistoryPaginator, LiveUpdatesMixin, instant

_RUNS_SHOWN = 100


_STATUSES = {
    "leader": ("★", _("Leader")),
    "standby": ("●", _("Standby")),
    "outdated": ("◌", _("Outdated")),
    "runs_only": ("▷", _("Runs tasks only")),
    "stopping": ("◧", _("Stopping")),
    "unresponsive": ("◔", _("Unresponsive")),
    "lost": ("▲", _("Lost")),
    "stopped": ("■", _("Stopped")),
    "unfinished": ("↯", _("Stopped with unfinished runs")),
    "crashed": ("✖", _("Crashed")),
}
"""The states of a scheduler process, as people read them."""


def instance_status(instance: SchedulerInstance, now: datetime) -> str:
    """Return the state of a process at the database's time, one of ``_STATUSES``."""
    if gave_up(instance):
        return "unfinished"
    if instance.stopped_at is not None:
        # A clean stop sends a last heartbeat; a process that is found dead did not.
        return "stopped" if instance.heartbeat_at >= instance.stopped_at else "crashed"
    if now - instance.heartbeat_at > options().LEASE:
        return "lost"
    if instance.mute_since is not None:
        # Its watchdog sends heartbeats for it; the scheduler itself does nothing.
        return "unresponsive"
    if instance.stop_requested_at is not None:
        return "stopping"
    if not instance.digest:
        return "runs_only"
    if instance.scheduler.leader_id == instance.pk:
        return "leader"
    return "standby" if instance.digest == instance.scheduler.digest else "outdated"


# --- columns --------------------------------------------------------------------


@admin.display(description=_("scheduler"), ordering="host")
def process(instance: SchedulerInstance) -> str:
    if not instance.release:
        return str(instance)
    return format_html('{} <span class="ddc-more">{}</span>', str(instance), instance.release)


@admin.display(description=_("status"))
def status(instance: Any) -> SafeString:
    found = instance_status(instance, instance.database_now)
    symbol, word = _STATUSES[found]
    return badges.badge(f"instance-{found}", symbol, str(word))


@admin.display(description=_("last heartbeat"), ordering="heartbeat_at")
def heartbeat(instance: Any) -> str:
    if gave_up(instance):
        return NOTHING
    silence = instance.database_now - instance.heartbeat_at
    age = badges.span(timedelta(seconds=max(round(silence.total_seconds()), 0)))
    ago = gettext("%(age)s ago") % {"age": age} if instance.stopped_at is None else ""
    return format_html(
        '{} <span class="ddc-more">{}</span>', ago, badges.moment(instance.heartbeat_at)
    )


@admin.display(description=_("running"))
def running(instance: Any) -> str:
    return str(instance.running or NOTHING)


@admin.display(description=_("since"), ordering="started_at")
def since(instance: Any) -> str:
    """Return when the process became the leader, or started."""
    is_leader = instance_status(instance, instance.database_now) == "leader"
    return badges.moment((is_leader and instance.scheduler.led_since) or instance.started_at)


started = instant(SchedulerInstance, "started_at")
initialized = instant(SchedulerInstance, "initialized_at")
mute = instant(SchedulerInstance, "mute_since")
stop_requested = instant(SchedulerInstance, "stop_requested_at")
stopped = instant(SchedulerInstance, "stopped_at")


@dataclass(frozen=True, slots=True)
class Outbox:
    """The events that wait for delivery, and how long the oldest has waited."""

    backlog: Backlog
    age: str


class SchedulerInstanceAdmin(LiveUpdatesMixin):
    """Show the scheduler processes with their last heartbeat, and how each ended."""

    list_display: Columns = [process, status, heartbeat, running, since, stop_requested, stopped]
    list_select_related = ["scheduler"]
    # Processes that have not ended come first.
    ordering = [F("stopped_at").desc(nulls_first=True), "-heartbeat_at"]
    search_fields = ["host", "release"]
    paginator = HistoryPaginator
    fields: ClassVar[Columns] = [
        *(status, since, "host", "pid", "release", started, initialized, heartbeat, mute, running),
        *(stop_requested, stopped, "id", "digest"),
    ]
    change_list_template = f"{TEMPLATES}/schedulerinstance/change_list.html"
    change_form_template = f"{TEMPLATES}/schedulerinstance/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        view = require_POST(self.writing_view(self.notify_view))
        return [path("notify/", view, name=self.url_name("notify")), *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        # The template calls these, so not before the view permission has been checked.
        context = {
            "outbox": outbox,
            "channels": partial(self._channels, request),
            "notify_url": self.url(SchedulerInstance, "notify"),
        }
        return super().changelist_view(request, context | (extra_context or {}))

    def get_queryset(self, request: HttpRequest) -> QuerySet[SchedulerInstance]:
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
        runs = TaskRun.objects.filter(
            scheduler=row.scheduler_id, instance=row.pk, running_slot__isnull=False
        )
        newest = runs.select_related("instance").defer(*task_detail.LONG).order_by("-id")
        return {"runs": task_detail.current_runs(self, request, newest[:_RUNS_SHOWN])}

    # --- test messages ----------------------------------------------------------

    def _channels(self, request: HttpRequest) -> list[str]:
        """Return the names of the channels that the user may test."""
        return [each.name for each in options().NOTIFY] if self._may_notify(request) else []

    def _may_notify(self, request: HttpRequest) -> bool:
        allowed = self.may_act(request, "notify_schedulerinstance")
        return allowed and self.has_view_permission(request)

    def notify_view(self, request: HttpRequest) -> HttpResponse:
        if not self._may_notify(request):
            raise PermissionDenied
        asked = request.POST.get("channel")
        channel = next((each for each in options().NOTIFY if each.name == asked), None)
        if channel is None:
            raise Http404
        deployment = options().DEPLOYMENT
        states = SchedulerState.objects.using(database.alias()).filter(deployment=deployment)
        state = states.first() or SchedulerState(deployment=deployment)
        self.log_action(request, [state], _("Send a test message"), channel.name)
        error = send_test_message(channel, deployment, str(request.user), system_clock.now())
        text, level = gettext("%(channel)s accepted the test message."), messages.SUCCESS
        if error:
            text = gettext("%(channel)s did not accept the test message: %(error)s")
            level = messages.ERROR
        self.message_user(request, text % {"channel": channel.name, "error": error}, level)
        return HttpResponseRedirect(self.url(SchedulerInstance, "changelist"))


def outbox() -> Outbox | None:
    """Return the events that wait for delivery, ``None`` without an event sink."""
    found = undelivered(database.alias(), options().DEPLOYMENT, system_clock.database_time())
    return None if found is None else Outbox(backlog=found, age=badges.span(found.age))
