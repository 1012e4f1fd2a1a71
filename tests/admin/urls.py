"""Two admin sites: Django's own, and one that a project made itself."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from django_declarative_cron.admin import ScheduledTaskAdmin, TaskRunAdmin
from django_declarative_cron.models import ScheduledTask, SchedulerInstance, TaskRun

operations = admin.AdminSite(name="operations")
operations.register(ScheduledTask, ScheduledTaskAdmin)
operations.register(TaskRun, TaskRunAdmin)

bare = admin.AdminSite(name="bare")
bare.register(ScheduledTask, ScheduledTaskAdmin)

# A project's own pages of our models, with nothing of ours but the templates that they find.
plain = admin.AdminSite(name="plain")
for model in (ScheduledTask, TaskRun, SchedulerInstance):
    plain.register(model)

urlpatterns = [
    path("admin/", admin.site.urls),
    path("operations/", operations.urls),
    path("bare/", bare.urls),
    path("plain/", plain.urls),
    path("i18n/", include("django.conf.urls.i18n")),
]
