"""Who takes part: the product, its peers, and the least that anybody could do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DJANGO = "django>=6.1,<6.2"
POSTGRES = "psycopg[binary]>=3.2"


@dataclass(frozen=True)
class Contender:
    """One of those that are measured.

    Args:
        id: of its modules, one in each part it takes part in.
        label: in tables.
        distribution: whose version stands beside the figures.
        requirements: of the environment that is made for it; none where this one does.
        apps: of its Django project, ``None`` where it needs no Django.
        settings: of that project.
        beside: other distributions whose versions are told.
    """

    id: str
    label: str
    distribution: str
    requirements: tuple[str, ...] = ()
    apps: tuple[str, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    beside: tuple[str, ...] = ()


_TASKS_DB = {"TASKS": {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}}

CONTENDERS = {
    each.id: each
    for each in (
        Contender(
            "product",
            "declarative-cron",
            "django-declarative-cron",
            apps=("django_declarative_cron",),
            beside=("django",),
        ),
        Contender("limit", "bare limit", "psycopg"),
        Contender("plain", "Django's plain pages", "django", apps=("django_declarative_cron",)),
        Contender("cronsim", "cronsim", "cronsim", ("cronsim>=2.6",)),
        Contender("croniter", "croniter", "croniter", ("croniter>=6", "python-dateutil")),
        Contender(
            "celery",
            "celery-beat",
            "django-celery-beat",
            # Its newest releases refuse Django 6.1: it is given the Django that it asks for.
            ("django-celery-beat>=2.8", POSTGRES),
            ("django_celery_beat",),
            {"CELERY_BROKER_URL": "memory://", "DJANGO_CELERY_BEAT_TZ_AWARE": True},
            ("celery", "django"),
        ),
        Contender(
            "apscheduler",
            "APScheduler",
            "apscheduler",
            ("apscheduler>=3.11,<4", "sqlalchemy>=2", POSTGRES),
            beside=("sqlalchemy",),
        ),
        Contender(
            "q2",
            "django-q2",
            "django-q2",
            ("django-q2>=1.8", "croniter", DJANGO, POSTGRES),
            ("django_q",),
            {"Q_CLUSTER": {"name": "bench", "orm": "default", "workers": 2, "save_limit": 0}},
            ("django",),
        ),
        Contender(
            "ticks",
            "django-ticks",
            "django-ticks",
            ("django-ticks>=0.1", DJANGO, POSTGRES),
            ("django_ticks",),
            beside=("django",),
        ),
        Contender(
            "periodic_tasks",
            "django-periodic-tasks",
            "django-periodic-tasks",
            ("django-periodic-tasks>=0.2", "django-tasks-db>=0.13", DJANGO, POSTGRES),
            ("django_tasks_db", "django_periodic_tasks", "benchmarks.harness.jobs"),
            _TASKS_DB,
            ("django",),
        ),
        Contender(
            "procrastinate",
            "procrastinate",
            "procrastinate",
            ("procrastinate>=3", POSTGRES),
        ),
        Contender(
            "tasks_db",
            "django-tasks-db",
            "django-tasks-db",
            ("django-tasks-db>=0.13", DJANGO, POSTGRES),
            ("django_tasks_db", "benchmarks.harness.jobs"),
            _TASKS_DB,
            ("django",),
        ),
        Contender("huey", "huey (SQLite)", "huey", ("huey>=2.5",)),
        Contender(
            "product_sqlite",
            "declarative-cron (SQLite)",
            "django-declarative-cron",
            apps=("django_declarative_cron",),
            settings={"SQLITE": True},
            beside=("django",),
        ),
        *(
            Contender(kind, label, "django-declarative-cron", beside=("django",))
            for kind, label in (
                ("thread", "thread"),
                ("coroutine", "thread, `async def`"),
                ("process", "process"),
            )
        ),
    )
}
