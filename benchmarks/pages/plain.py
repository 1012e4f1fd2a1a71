"""The least that the admin does: Django's own lists and forms, of the product's rows."""

from __future__ import annotations

import sys

from django.contrib import admin
from django.urls import path

from django_declarative_cron.models import ScheduledTask, TaskRun

from . import product
from .fetching import LANGUAGES


class PlainTasks(admin.ModelAdmin):  # type: ignore[type-arg]
    """A list as Django makes it, of plain columns."""

    list_display = ("name", "cron", "timezone", "next_run_at", "last_attempt_at", "enabled", "pk")
    search_fields = ("name",)


class PlainRuns(admin.ModelAdmin):  # type: ignore[type-arg]
    """Likewise."""

    list_display = ("task_name", "outcome", "scheduled_for", "started_at", "finished_at", "pk")
    search_fields = ("task_name",)


site = admin.AdminSite(name="plain")
site.register(ScheduledTask, PlainTasks)
site.register(TaskRun, PlainRuns)
urlpatterns = [path("plain/", site.urls), LANGUAGES]


class Case(product.Case):
    """The pages that Django has for any model."""

    routes = __name__

    def pages(self) -> dict[str, str]:
        """Give those that it has."""
        return product.shared(sys.maxsize, "plain")
