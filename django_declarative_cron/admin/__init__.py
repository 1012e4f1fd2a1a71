"""The admin pages; the classes can be registered on other admin sites as they are."""

from __future__ import annotations

from django.contrib import admin

from ..models import AccessToken, ScheduledTask, SchedulerInstance, TaskOverride, TaskRun
from .access_tokens import AccessTokenAdmin
from .actions import TaskOverrideAdmin
from .runs import TaskRunAdmin
from .schedulers import SchedulerInstanceAdmin
from .tasks import ScheduledTaskAdmin

__all__ = [
    "AccessTokenAdmin",
    "ScheduledTaskAdmin",
    "SchedulerInstanceAdmin",
    "TaskOverrideAdmin",
    "TaskRunAdmin",
]

admin.site.register(ScheduledTask, ScheduledTaskAdmin)
admin.site.register(TaskRun, TaskRunAdmin)
admin.site.register(TaskOverride, TaskOverrideAdmin)
admin.site.register(SchedulerInstance, SchedulerInstanceAdmin)
admin.site.register(AccessToken, AccessTokenAdmin)
