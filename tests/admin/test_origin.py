"""Where a task comes from, in the list and on its page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.test import Client
from django.urls import reverse

from django_declarative_cron import conf
from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.store import posted_tasks

from ..http.reports import tasks as reports


def test_a_task_of_http_says_so_and_can_be_filtered(
    root: Client, text: Callable[[Any], str]
) -> None:
    assert reports.generate
    entry = {"name": "daily", "cron": "0 9 * * *", "type": "report.generate"}
    declaration, _ = conf.posted(entry)
    assert declaration is not None
    posted_tasks.post(declaration, system_clock.now())
    row = ScheduledTask.objects.get()
    page = reverse("admin:django_declarative_cron_scheduledtask_change", args=[row.pk])
    assert "Declared by: HTTP" in text(root.get(page))
    listed = reverse("admin:django_declarative_cron_scheduledtask_changelist")
    assert "daily" in text(root.get(f"{listed}?origin__exact=http"))
    assert "0 scheduled tasks" in text(root.get(f"{listed}?origin__exact=settings"))
