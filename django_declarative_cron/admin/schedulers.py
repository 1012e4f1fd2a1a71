"""The processes that run tasks."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from ..models import SchedulerInstance
from ..runtime.clock import system_clock
from . import formats
from .readonly import NOTHING, Columns, HistoryPaginator, ReadOnlyAdmin, instant


@admin.display(description=_("leader"), boolean=True)
def leads(instance: SchedulerInstance) -> bool:
    """Tell whether the process leads its deployment."""
    return instance.scheduler.leader_id == instance.pk


@admin.display(description=_("last heartbeat at"), ordering="heartbeat_at")
def heartbeat(instance: SchedulerInstance) -> str:
    """Show the newest heartbeat and how long ago it was."""
    if instance.heartbeat_at is None:
        return NOTHING
    return format_html(
        '{}<span class="ddc-more">{}</span>',
        formats.moment(instance.heartbeat_at),
        formats.relative(instance.heartbeat_at, system_clock.now()),
    )


started = instant(SchedulerInstance, "started_at")
initialized = instant(SchedulerInstance, "initialized_at")
stop_requested = instant(SchedulerInstance, "stop_requested_at")
stopped = instant(SchedulerInstance, "stopped_at")


class SchedulerInstanceAdmin(ReadOnlyAdmin):
    """Show who schedules, who leads, and when each was last heard of."""

    list_display: Columns = ["host", "pid", "release", leads, heartbeat, started, stopped]
    list_select_related = ["scheduler"]
    ordering = ["-heartbeat_at"]
    search_fields = ["host", "release"]
    paginator = HistoryPaginator
    fields: ClassVar[Columns] = [
        "id",
        "host",
        "pid",
        "release",
        leads,
        started,
        initialized,
        heartbeat,
        stop_requested,
        stopped,
        "digest",
    ]
