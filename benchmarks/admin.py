"""Pages of the admin with a long history: 1,000 tasks and 1,000,000 runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from .figures import Figure, Row
from .measuring import NOTHING, Cost, median_cost, names, nothing
from .processes import Function, measured

if TYPE_CHECKING:
    from django.db.models import Model

LIST = "list of 1,000 tasks"
RUNS = "list of 1,000,000 runs"
FIGURES = (
    Figure(LIST, "ms", target=300, statements=10),
    Figure(RUNS, "ms"),
)
NO_PAGES = {
    "apscheduler": "it has no admin",
    "procrastinate": "its admin lists jobs; it has no list of periodic tasks",
}
# One task in ten is due each minute, the others at intervals of hours and days.
CRONS = ("* * * * *", "0,15,30,45 * * * *", *("{m} * * * *",) * 4, *("{m} {h} * * *",) * 4)
STEPS = ("1 minute", "15 minutes", *("1 hour",) * 4, *("1 day",) * 4)
"""Intervals between the runs of a task, in the order of its schedules."""


def measure(small: bool = False) -> list[Row]:
    """Measure everybody that lists its tasks."""
    size, each = (20, 3) if small else (1000, 1000)
    rows = []
    for contender, work in CONTENDERS.items():
        rows += measured(contender, work, patience=300, size=size, each=each)
    return rows + [Row(contender=each, note=note) for each, note in NO_PAGES.items()]


def _crons(size: int) -> list[str]:
    return [CRONS[n % len(CRONS)].format(m=n % 60, h=n % 24) for n in range(size)]


def _fetched(what: str, url: str) -> Row:
    """Fetch a page several times as a superuser."""
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    user, _ = User.objects.get_or_create(username="ada", is_superuser=True, is_staff=True)
    client.force_login(user)

    def get() -> None:
        status = client.get(url).status_code
        if status != 200:
            raise RuntimeError(f"{url} was answered with {status}")

    get()
    found: Cost = median_cost(get, 7)
    return Row(what, found.milliseconds, found.statements)


def _analyze() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def product(size: int, each: int) -> list[Row]:
    """Fetch the product's pages."""
    from django.urls import reverse

    from django_declarative_cron import Scheduler
    from django_declarative_cron.models import (
        ScheduledTask,
        SchedulerInstance,
        SchedulerState,
        TaskRun,
    )

    now, delay = datetime.now(UTC), timedelta(minutes=5)
    scheduler = Scheduler(background=False)
    scheduler.initialize(
        [(name, cron, nothing, delay) for name, cron in zip(names(size), _crons(size), strict=True)]
    )
    # Alive until everything is measured, or the pages warn that no scheduler runs.
    SchedulerInstance.objects.update(heartbeat_at=now + timedelta(days=1))
    ScheduledTask.objects.update(
        registered_at=now - timedelta(days=60), last_attempt_at=now, last_success_at=now
    )
    run = TaskRun(
        scheduler=SchedulerState.objects.get(),
        task_name="",
        scheduled_for=now,
        reason="due",
        attempt=1,
    )
    differs = {
        "task_name": "name",
        "scheduled_for": "at",
        "started_at": "at",
        "finished_at": "at + interval '10 seconds'",
        "outcome": "CASE WHEN failed THEN 'failed' ELSE 'succeeded' END",
    }
    _multiply(run, differs, size, each)
    _analyze()
    pages = "admin:django_declarative_cron_{}_changelist"
    return [
        _fetched(LIST, reverse(pages.format("scheduledtask"))),
        _fetched(RUNS, reverse(pages.format("taskrun"))),
    ]


def django_q2(size: int, each: int) -> list[Row]:
    """Fetch the pages of django-q2."""
    from django.urls import reverse
    from django_q.models import Schedule, Task

    now = datetime.now(UTC)
    Schedule.objects.bulk_create(
        Schedule(name=name, func=NOTHING, schedule_type="C", cron=cron)
        for name, cron in zip(names(size), _crons(size), strict=True)
    )
    task = Task(id="", name="", func=NOTHING, started=now, stopped=now)
    differs = {
        "id": "md5(name || '-' || n)",
        "name": "name",
        "group": "name",
        "started": "at",
        "stopped": "at + interval '10 seconds'",
        "success": "NOT failed",
    }
    _multiply(task, differs, size, each)
    _analyze()
    return [
        _fetched(LIST, reverse("admin:django_q_schedule_changelist")),
        _fetched(RUNS, reverse("admin:django_q_success_changelist")),
    ]


def celery_beat(size: int, each: int) -> list[Row]:
    """Fetch the list of django-celery-beat."""
    from django.urls import reverse
    from django_celery_beat.models import CrontabSchedule, PeriodicTask

    def schedule(cron: str) -> CrontabSchedule:
        minute, hour, *_ = cron.split()
        return CrontabSchedule.objects.get_or_create(minute=minute, hour=hour)[0]

    PeriodicTask.objects.bulk_create(
        PeriodicTask(name=name, task="nothing", crontab=schedule(cron))
        for name, cron in zip(names(size), _crons(size), strict=True)
    )
    _analyze()
    page = _fetched(LIST, reverse("admin:django_celery_beat_periodictask_changelist"))
    return [page, Row(RUNS, note="it keeps no record of runs")]


def _multiply(seed: Model, differs: Mapping[str, str], size: int, each: int) -> None:
    """Insert a row for each run of each task, in the order in which they took place.

    Args:
        seed: an unsaved row with the values that all have.
        differs: SQL expressions of the other columns: ``name`` is the task's, ``n`` counts its
            runs backwards, ``at`` is the start, and ``failed`` says how it ended.
        size: number of tasks.
        each: number of runs of a task.
    """
    from django.db import connection

    values: dict[str, Any] = {"each": each, "size": size, "steps": list(STEPS)}
    columns, expressions = [], []
    for column in seed._meta.concrete_fields:
        if column.primary_key and column.name not in differs:
            continue
        values[column.name] = column.get_db_prep_save(getattr(seed, column.attname), connection)
        columns.append(connection.ops.quote_name(str(column.column)))
        expressions.append(differs.get(column.name, f"%({column.name})s"))
    table = connection.ops.quote_name(seed._meta.db_table)
    statement = f"""
        INSERT INTO {table} ({", ".join(columns)})
        SELECT {", ".join(expressions)} FROM (
            SELECT t, n, 'task-' || to_char(t, 'fm0000000') AS name,
                   now() - n * ((%(steps)s::text[])[1 + t %% 10])::interval AS at,
                   (n * 31 + t) %% 97 = 0 AS failed
            FROM generate_series(0, %(size)s - 1) AS t, generate_series(1, %(each)s) AS n
        ) AS runs ORDER BY at
    """
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


CONTENDERS: dict[str, Function] = {
    "product": product,
    "celery_beat": celery_beat,
    "django_q2": django_q2,
}
