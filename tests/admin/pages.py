"""Addresses of our admin pages."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from django_declarative_cron.models import ScheduledTask

APP = "django_declarative_cron"


def changelist(model: str = "scheduledtask", query: str = "", site: str = "admin") -> str:
    return reverse(f"{site}:{APP}_{model}_changelist") + query


def page(row: Any, site: str = "admin") -> str:
    return reverse(f"{site}:{APP}_{row._meta.model_name}_change", args=[row.pk])


def act(key: str, *tasks: ScheduledTask, site: str = "admin") -> str:
    query = "&".join(f"task={task.pk}" for task in tasks)
    return f"{reverse(f'{site}:{APP}_scheduledtask_act', args=[key])}?{query}"


def confirmed(*tasks: ScheduledTask, **said: str) -> dict[str, str]:
    return {"tasks": ",".join(str(task.pk) for task in tasks), "back": "list", **said}
