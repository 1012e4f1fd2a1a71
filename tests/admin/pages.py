"""Admin sites, Django's own and those of a project, and the addresses and words of their pages."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from django.contrib import admin
from django.urls import include, path, reverse

from django_declarative_cron.admin import ScheduledTaskAdmin, TaskRunAdmin
from django_declarative_cron.models import ScheduledTask, SchedulerInstance, TaskRun

APP = "django_declarative_cron"

operations = admin.AdminSite(name="operations")
operations.register(ScheduledTask, ScheduledTaskAdmin)
operations.register(TaskRun, TaskRunAdmin)

bare = admin.AdminSite(name="bare")
bare.register(ScheduledTask, ScheduledTaskAdmin)

runs = admin.AdminSite(name="runs")
runs.register(TaskRun, TaskRunAdmin)

# A project's own pages of our models, with nothing of ours but the templates that they find.
plain = admin.AdminSite(name="plain")
for model in (ScheduledTask, TaskRun, SchedulerInstance):
    plain.register(model)

urlpatterns = [
    path("admin/", admin.site.urls),
    path("operations/", operations.urls),
    path("bare/", bare.urls),
    path("runs/", runs.urls),
    path("plain/", plain.urls),
    path("i18n/", include("django.conf.urls.i18n")),
]


def text(response: Any) -> str:
    """Return the words of a page, without markup and with plain spaces."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", response.content.decode())).split())


def changelist(model: str = "scheduledtask", query: str = "", site: str = "admin") -> str:
    return reverse(f"{site}:{APP}_{model}_changelist") + query


def page(row: Any, site: str = "admin") -> str:
    return reverse(f"{site}:{APP}_{row._meta.model_name}_change", args=[row.pk])


def act(key: str, *tasks: ScheduledTask, site: str = "admin") -> str:
    query = "&".join(f"task={task.pk}" for task in tasks)
    return f"{reverse(f'{site}:{APP}_scheduledtask_act', args=[key])}?{query}"


def confirmed(*tasks: ScheduledTask, **said: str) -> dict[str, str]:
    return {"tasks": ",".join(str(task.pk) for task in tasks), "back": "list", **said}
