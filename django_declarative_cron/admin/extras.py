"""The pages beside the list of tasks: the calendar of a month, and the expression helper."""

from __future__ import annotations

from datetime import date, tzinfo
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext_lazy as _

from ..conf import options
from ..models import ScheduledTask
from ..runtime.clock import system_clock
from ..store.overview import Ended, ended_by_day
from ..store.queries import shapes
from . import calendar, days
from .acting import ActingAdmin
from .expressions import ExpressionForm, meaning_of

_PAGES = "admin/django_declarative_cron/scheduledtask"


class ExtraPagesAdmin(ActingAdmin):
    """Add the pages that belong to no single task."""

    def get_urls(self) -> list[URLPattern]:
        """Add the pages that Django has none for."""
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        pages = [("calendar", self.calendar_view), ("expression", self.expression_view)]
        added = [
            path(f"{page}/", self.admin_site.admin_view(view), name=f"{name}_{page}")
            for page, view in pages
        ]
        return [*added, *super().get_urls()]

    def calendar_view(self, request: HttpRequest) -> HttpResponse:
        """Show a month, and one of its days where that is asked for."""
        self._require_view(request)
        now, zone = system_clock.now(), timezone.get_current_timezone()
        today = now.astimezone(zone).date()
        day = calendar.day_of(request.GET.get("day", ""))
        asked = f"{day:%Y-%m}" if day else request.GET.get("month", "")
        month = calendar.month_of(asked, today)
        mine = self.get_queryset(request).filter(enabled=True)
        before, after = calendar.neighbours(month)
        declared = list(shapes(mine))
        weeks = calendar.weeks(month, today, zone, declared, _ended(month, zone, today))
        return self._beside(
            request,
            "calendar.html",
            {
                "title": _("Calendar"),
                "month": date_format(month, "YEAR_MONTH_FORMAT"),
                "before": before,
                "after": after,
                "weekdays": calendar.weekdays(),
                "weeks": weeks,
                "zone": timezone.get_current_timezone_name(),
                "day": None if day is None else days.of(self, mine, day, zone, now),
            },
        )

    def expression_view(self, request: HttpRequest) -> HttpResponse:
        """Return what an expression means."""
        self._require_view(request)
        initial = {"timezone": timezone.get_current_timezone_name(), "dialect": "posix"}
        given = {**initial, **{key: request.GET[key] for key in _ASKED if key in request.GET}}
        form = ExpressionForm(given if "expression" in given else None, initial=initial)
        meaning = None
        if form.is_bound and form.is_valid():
            meaning = meaning_of(form.cleaned_data, system_clock.now())
        context = {"title": _("Expression helper"), "form": form, "meaning": meaning}
        return self._beside(request, "expression.html", context)

    def _require_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _beside(self, request: HttpRequest, name: str, context: dict[str, Any]) -> HttpResponse:
        request.current_app = self.admin_site.name
        shared = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "list_url": self.address(ScheduledTask, "changelist"),
        }
        return TemplateResponse(request, f"{_PAGES}/{name}", {**shared, **context})


_ASKED = ("expression", "timezone", "dialect")


def _ended(month: date, zone: tzinfo, today: date) -> dict[date, Ended]:
    past = [day for day in calendar.days_of(month) if day <= today]
    return ended_by_day(options().DEPLOYMENT, {day: calendar.bounds(day, zone) for day in past})
