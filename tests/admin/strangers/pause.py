"""Pause a task by the admin of that project, and print what was written down."""

from __future__ import annotations

import json
import sys

import django
from django.core.management import call_command

django.setup()

from django.contrib.admin.models import LogEntry  # noqa: E402
from django.contrib.auth.models import Permission  # noqa: E402
from django.test import Client  # noqa: E402

from django_declarative_cron.models import TaskOverride  # noqa: E402
from tests.admin import pages, rows  # noqa: E402
from tests.admin.strangers.models import Stranger  # noqa: E402

call_command("migrate", run_syncdb=True, verbosity=0)
task = rows.task()
user = Stranger.objects.create(badge="42")
wanted = ("view_scheduledtask", "pause_scheduledtask")
user.user_permissions.set(Permission.objects.filter(codename__in=wanted))
client = Client()
client.force_login(user)
response = client.post(pages.act("pause"), pages.confirmed(task, note="why"))
act, entry = TaskOverride.objects.get(), LogEntry.objects.get()
found = {
    "status": response.status_code,
    "page": client.get(pages.page(task)).status_code,
    "author": act.author,
    "key": act.author_key == str(user.pk),
    "entry": entry.user_id == user.pk,
}
sys.stdout.write(json.dumps(found))
