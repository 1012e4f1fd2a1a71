"""Schedule in that project, look at it and act in the admin; print what was seen."""

from __future__ import annotations

import json
import sys
from io import StringIO
from typing import Any

import django
from django.core.management import call_command
from django.db import connections

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.test import Client  # noqa: E402

from django_declarative_cron.models import ScheduledTask, TaskOverride, TaskRun  # noqa: E402
from django_declarative_cron.testing import Simulation  # noqa: E402
from tests.admin import pages  # noqa: E402

asked: list[str] = []


def note(execute: Any, sql: str, *rest: Any) -> Any:
    """Write down what the replica is asked."""
    asked.append(sql)
    return execute(sql, *rest)


connections["replica"].execute_wrappers.append(note)
call_command("migrate", database="jobs", verbosity=0)
asked.clear()

sim = Simulation(start="2024-01-01T10:00:30Z", instances=2)
minutely = {"cron": "* * * * *", "timezone": "UTC", "overlap_policy": "coalesce"}
tasks = [("good", sim.job()), ("failing", sim.job(["fail"])), ("slow", sim.job())]
sim.initialize([{"name": name, "callback": job, **minutely} for name, job in tasks])
sim.advance_to("2024-01-01T10:05:30Z")
sim[0].crash()
sim.advance_to("2024-01-01T10:10:30Z")
deciding = len(asked)

client = Client()
client.force_login(User.objects.db_manager("jobs").create_superuser("ada"))
[task] = ScheduledTask.objects.filter(name="good")
run = TaskRun.objects.first()
shown = [pages.changelist(), pages.page(task), pages.page(run), pages.changelist("taskrun")]
statuses = [client.get(address).status_code for address in shown]
acted = client.post(pages.act("pause"), pages.confirmed(task, note="why")).status_code
listed = StringIO()
call_command("cron", "list", stdout=listed)
found = {
    "the replica decides": deciding,
    "runs": TaskRun.objects.using("jobs").filter(task_name="good").count(),
    "pages": statuses,
    "act": acted,
    "paused by": TaskOverride.objects.using("jobs").get().author,
    "listed": "good" in listed.getvalue(),
}
sys.stdout.write(json.dumps(found))
