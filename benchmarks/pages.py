"""What the pages of the admin cost with a long history: queries, and milliseconds.

``DDC_TEST_DATABASE=postgres python -m benchmarks.pages`` makes a database of its own with
1,000 tasks and 1,000,000 runs, and then one with 10,000 tasks and as many runs; the pages
are fetched in turns, as often as there are rounds. Beside them stands the list that Django
itself makes of the same tasks: one hundred rows with seven plain columns.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean, median
from typing import Any
from uuid import uuid4

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
os.environ.setdefault("DDC_TEST_ADMIN_INTERFACE", "0")

import django

django.setup()

from django.conf import settings
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, setup_databases, teardown_databases
from django.urls import include, path, reverse

from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.store import rows

PREFIX = "django_declarative_cron"
ZONES = ("UTC", "Europe/Berlin", "America/New_York")
# One in ten each minute, the others in hours and days, as in a project that grew.
CRONS = ("* * * * *", "*/5 * * * *", *("{m} * * * *",) * 4, *("{m} {h} * * *",) * 4)

plain = admin.AdminSite(name="bare")


class PlainAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A list as Django makes it, of plain columns."""

    list_display = ("name", "cron", "timezone", "next_run_at", "last_attempt_at", "enabled", "pk")


plain.register(ScheduledTask, PlainAdmin)
urlpatterns = [
    path("admin/", admin.site.urls),
    path("plain/", plain.urls),
    path("i18n/", include("django.conf.urls.i18n")),
]


def fill(tasks: int, runs: int, now: datetime) -> None:
    """Store so many tasks, and so many runs in the order in which they took place.

    Args:
        tasks: number of tasks.
        runs: number of runs in all.
        now: the end of the history.
    """
    for model in (TaskRun, ScheduledTask, SchedulerInstance, SchedulerState):
        model.objects.all().delete()
    state = SchedulerState.objects.create(deployment="default")
    # Alive until all is measured, or the pages would warn that nobody is at work.
    worker = SchedulerInstance.objects.create(
        id=uuid4(),
        scheduler=state,
        host="worker",
        pid=1,
        started_at=now,
        heartbeat_at=now + timedelta(days=1),
    )
    state.leader = worker
    state.save()
    ScheduledTask.objects.bulk_create(_tasks(state, tasks, now))
    each = runs // tasks
    _history(state, each, now)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _tasks(state: SchedulerState, number: int, now: datetime) -> Iterator[ScheduledTask]:
    for n in range(number):
        task = ScheduledTask(
            scheduler=state,
            scheduler_identifier=state.identifier,
            name=f"task-{n:05}",
            cron=CRONS[n % len(CRONS)].format(m=n % 60, h=n % 24),
            timezone=ZONES[n % 3],
            retry_delay=timedelta(minutes=5),
            callback=f"app{n % 7}.tasks.work",
            digest="0" * 64,
            declaration={"dialect": "ojs", "tags": [f"tag{n % 5}"]},
            registered_at=now - timedelta(days=60),
            last_attempt_at=now - timedelta(minutes=n % 60),
            last_success_at=now - timedelta(minutes=n % 60),
        )
        task.next_run_at = task.wake_at = rows.schedule_of(task).next_after(now)
        if n % 50 == 0:
            task.pending_retry_until, task.attempt = now + timedelta(minutes=3), 1
        yield task


def _history(state: SchedulerState, each: int, now: datetime) -> None:
    """Multiply one run of each task, in the database."""
    seed = TaskRun(
        scheduler=state, task_name="", scheduled_for=now, outcome="succeeded", reason="due"
    )
    seed.attempt = 1
    own: dict[str, str] = {
        "task_name": "t.name",
        "scheduled_for": "%(now)s - n * step - interval '1 minute'",
        "started_at": "%(now)s - n * step - interval '1 minute'",
        "finished_at": "%(now)s - n * step - interval '50 seconds'",
        "outcome": "CASE WHEN (n * 31 + t.id) %% 97 = 0 THEN 'failed' ELSE 'succeeded' END",
    }
    stored = [each for each in TaskRun._meta.concrete_fields if not each.primary_key]
    given: dict[str, Any] = {"now": now, "each": each}
    chosen = []
    for column in stored:
        given[column.name] = column.get_db_prep_save(getattr(seed, column.attname), connection)
        chosen.append(own.get(column.name, f"%({column.name})s"))
    columns = ", ".join(f'"{column.column}"' for column in stored)
    step = (
        "CASE WHEN t.cron = '* * * * *' THEN interval '1 minute'"
        " WHEN t.cron LIKE '*/5%%' THEN interval '5 minutes'"
        " WHEN t.cron LIKE '%% * * * *' THEN interval '1 hour' ELSE interval '1 day' END"
    )
    tasks, runs = ScheduledTask._meta.db_table, TaskRun._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{runs}" ({columns}) SELECT {", ".join(chosen)}'
            f' FROM (SELECT id, name, {step} AS step FROM "{tasks}" t) t,'
            " generate_series(%(each)s, 1, -1) AS n ORDER BY n * step DESC",
            given,
        )


def addresses() -> dict[str, str]:
    """Give the pages that are measured."""

    def of(model: str, page: str, *args: object, site: str = "admin") -> str:
        return reverse(f"{site}:{PREFIX}_{model}_{page}", args=args)

    tasks = of("scheduledtask", "changelist")
    every_minute = ScheduledTask.objects.filter(cron="* * * * *").order_by("pk")[0]
    daily = ScheduledTask.objects.filter(cron__endswith=" * * *").order_by("-pk")[0]
    failed = TaskRun.objects.filter(outcome="failed").order_by("-id")[0]
    runs = of("taskrun", "changelist")
    return {
        "list of tasks": tasks,
        "list, last page": f"{tasks}?p={(ScheduledTask.objects.count() - 1) // 100 + 1}",
        "list, sorted by name": f"{tasks}?o=2",
        "list, failed within 24 h": f"{tasks}?failed=day",
        "list, last outcome failed": f"{tasks}?last=failed",
        "list, search": f"{tasks}?q=task-009",
        "task, each minute": of("scheduledtask", "change", every_minute.pk),
        "task, each day": of("scheduledtask", "change", daily.pk),
        "history of runs": runs,
        "history of one task": f"{runs}?task_name__exact={every_minute.name}",
        "history, failed": f"{runs}?outcome__exact=failed",
        "run": of("taskrun", "change", failed.pk),
        "calendar": of("scheduledtask", "calendar"),
        "schedulers": of("schedulerinstance", "changelist"),
        "Django's plain list": of("scheduledtask", "changelist", site="bare"),
    }


@dataclass
class Cost:
    """What a page took, once for each round."""

    queries: int = 0
    took: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    def measure(self, client: Client, url: str) -> None:
        """Fetch it once more.

        Args:
            client: logged in.
            url: of the page.
        """
        theirs, busy, began = database_work(), time.process_time(), time.perf_counter()
        client.get(url)
        self.took.append((time.perf_counter() - began) * 1000)
        self.busy.append((time.process_time() - busy) * 1000)
        self.theirs.append(database_work() - theirs)

    def line(self, name: str) -> str:
        """Say it in one line; what the system counts in hundredths is told as the mean.

        Args:
            name: of the page.
        """
        return (
            f"  {name:26}{self.queries:3} queries{median(self.busy):7.0f} ms here +"
            f"{fmean(self.theirs):4.0f} in the database{median(self.took):7.0f} ms in all"
            f"{max(self.took):7.0f} at most"
        )


def database_work() -> float:
    """Give the milliseconds that our process of the database has worked, as its system counts."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [pid] = cursor.fetchone()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def measure(client: Client, rounds: int) -> None:
    """Fetch every page in turns, and print what it took.

    Args:
        client: logged in.
        rounds: how often.
    """
    pages = addresses()
    costs = {name: Cost() for name in pages}
    for name, url in pages.items():
        with CaptureQueriesContext(connection) as captured:
            assert client.get(url).status_code == 200, name
        costs[name].queries = len(captured)
    for _ in range(rounds):
        for name, url in pages.items():
            costs[name].measure(client, url)
    for name, cost in costs.items():
        print(cost.line(name))


def profile(client: Client, url: str) -> None:
    """Print where the time of one page goes.

    Args:
        client: logged in.
        url: of the page.
    """
    import cProfile
    import pstats

    client.get(url)
    seen = cProfile.Profile(time.process_time)
    seen.runcall(client.get, url)
    pstats.Stats(seen).sort_stats("cumtime").print_stats(60)
    with CaptureQueriesContext(connection) as captured:
        client.get(url)
    for query in sorted(captured.captured_queries, key=lambda each: -float(each["time"])):
        print(query["time"], query["sql"][:300])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured")
    parser.add_argument("--runs", type=int, default=1_000_000, help="how many runs there are")
    parser.add_argument("--tasks", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--profile", metavar="PAGE", help="print where its time goes")
    chosen = parser.parse_args()
    if connection.vendor != "postgresql":
        parser.error("Set DDC_TEST_DATABASE=postgres: the history is made by PostgreSQL itself.")
    settings.ROOT_URLCONF = __name__
    old = setup_databases(verbosity=0, interactive=False)
    try:
        from django.contrib.auth.models import User

        client = Client()
        client.force_login(User.objects.create_superuser("ada"))
        for tasks in chosen.tasks:
            fill(tasks, chosen.runs, datetime.now(UTC))
            print(f"{tasks:,} tasks, {chosen.runs:,} runs, median of {chosen.rounds} rounds")
            if chosen.profile:
                profile(client, addresses()[chosen.profile])
            else:
                measure(client, chosen.rounds)
    finally:
        connection.close()
        teardown_databases(old, verbosity=0)


if __name__ == "__main__":
    main()
