"""Tasks as a project has them that grew, and their history, multiplied in the database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import connection

if TYPE_CHECKING:
    from django.db.models import Model

ZONES = ("UTC", "Europe/Berlin", "America/New_York")
# One in ten each minute, the others in hours and days.
CRONS = ("* * * * *", "*/5 * * * *", *("{m} * * * *",) * 4, *("{m} {h} * * *",) * 4)
STEPS = ("1 minute", "5 minutes", *("1 hour",) * 4, *("1 day",) * 4)
"""How far apart the runs of a task are, in the order of its schedules."""

NOW = "%(now)s - n * step::interval"


def tasks(size: int) -> Iterator[tuple[str, str, str]]:
    """Give name, expression and zone of so many tasks.

    Args:
        size: how many.
    """
    for n in range(size):
        cron = CRONS[n % len(CRONS)].format(m=n % 60, h=n % 24)
        yield f"task-{n:05}", cron, ZONES[n % len(ZONES)]


def write_history(seed: Model, own: Mapping[str, str], size: int, each: int, now: datetime) -> None:
    """Multiply one row, for each task and each of its runs, in the order in which they took place.

    Args:
        seed: an unsaved row.
        own: expressions of columns that differ; ``name`` is the task's, ``n`` counts its runs.
        size: number of tasks.
        each: number of runs of a task.
        now: the end of the history.
    """
    given: dict[str, Any] = {"now": now, "each": each, "size": size, "steps": list(STEPS)}
    columns, chosen = [], []
    for column in seed._meta.concrete_fields:
        if column.primary_key and column.name not in own:
            continue
        given[column.name] = column.get_db_prep_save(getattr(seed, column.attname), connection)
        columns.append(connection.ops.quote_name(str(column.column)))
        chosen.append(own.get(column.name, f"%({column.name})s"))
    table = connection.ops.quote_name(seed._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(chosen)}"
            " FROM (SELECT t, 'task-' || to_char(t, 'fm00000') AS name,"
            " (%(steps)s::text[])[1 + t %% array_length(%(steps)s::text[], 1)] AS step"
            " FROM generate_series(0, %(size)s - 1) AS t) AS tasks,"
            " generate_series(%(each)s, 1, -1) AS n ORDER BY n * step::interval DESC",
            given,
        )


FAILED = "(n * 31 + t) %% 97 = 0"
"""Tells, in such an expression, which runs failed."""


def long_ago(now: datetime) -> datetime:
    """Give when everything was declared.

    Args:
        now: the present instant.
    """
    return now - timedelta(days=60)
