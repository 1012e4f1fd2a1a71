"""A banner on the lists while no scheduler is at work, and what to do about it."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse

from ..conf import options
from ..models import SchedulerInstance
from ..runtime.clock import system_clock
from ..store import database
from ..store.status import attendance, gave_up, is_attended, patience
from . import formats
from .live import LiveAdmin


class AttendedAdmin(LiveAdmin):
    """Warn above the list while nobody schedules."""

    change_list_template = "admin/django_declarative_cron/attended_list.html"

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, with what stands above it."""
        # Called by the template, so not before it is known that the user may see the list.
        context = {"absence": partial(self._absence, request)}
        return super().changelist_view(request, context | (extra_context or {}))

    def _absence(self, request: HttpRequest) -> dict[str, Any] | None:
        if self.is_attended(request, patience(options().LEASE)):
            return None
        using, ours, clock = database.alias(), options(), system_clock
        found = attendance(using, ours.DEPLOYMENT, clock.now(), clock.database_time())
        if found is None or found.last is None:
            return {"last": None, "overdue": 0, "url": ""}
        last = found.last
        return {
            # Where schedulers run is for those who may see schedulers.
            "last": str(last) if self.shows(request, SchedulerInstance) else "",
            "ago": "" if gave_up(last) else formats.relative(last.heartbeat_at, found.now),
            "has_stopped": last.stop_requested_at is not None,
            "overdue": found.overdue,
            "url": self._schedulers(request),
        }

    def is_attended(self, request: HttpRequest, within: timedelta) -> bool:
        """Return whether a scheduler was heard of lately."""
        database_time = system_clock.database_time()
        return is_attended(database.alias(), options().DEPLOYMENT, within, database_time)

    def _schedulers(self, request: HttpRequest) -> str:
        if self.model is SchedulerInstance or not self.shows(request, SchedulerInstance):
            return ""
        return self.address(SchedulerInstance, "changelist")
