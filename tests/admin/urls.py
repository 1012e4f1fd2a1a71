"""Two admin sites: Django's own, and one that a project made itself."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from django_declarative_cron.admin import ScheduledTaskAdmin, TaskRunAdmin
from django_declarative_cron.models import ScheduledTask, TaskRun

operations = admin.AdminSite(name="operations")
operations.register(ScheduledTask, ScheduledTaskAdmin)
operations.register(TaskRun, TaskRunAdmin)

bare = admin.AdminSite(name="bare")
bare.register(ScheduledTask, ScheduledTaskAdmin)

urlpatterns = [
    path("admin/", admin.site.urls),
    path("operations/", operations.urls),
    path("bare/", bare.urls),
    path("i18n/", include("django.conf.urls.i18n")),
]
