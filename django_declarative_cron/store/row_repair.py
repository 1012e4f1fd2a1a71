"""Putting right what a database without column types took for a value.

SQLite keeps a text in a number's column, and any text in an instant's. Fetching such a
row fails, and with it everything that is fetched at the same time. So whoever reads is
wrapped in ``mending``: nothing is checked until something fails; then the columns that
cannot be read get a value that can, and what failed is done once more. A task's row keeps
the names of those columns in place of its digest; whoever evaluates it next rewrites it
from its declaration as an override (semantics 9, "Damaged row").
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import OperationalError, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F

from ..core.decoding import UNREADABLE
from ..models import (
    OutboxEvent,
    RegistrationPart,
    RegistrationSet,
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskOverride,
    TaskRun,
)
from . import database, rows
from .guard import LONG_AGO

_T = TypeVar("_T")
_FAILS = (*rows.DAMAGE, ValidationError)
_PRESENT: tuple[type[models.Model], ...] = (
    SchedulerState,
    SchedulerInstance,
    ScheduledTask,
    TaskOverride,
)
_MODELS: tuple[type[models.Model], ...] = (
    *_PRESENT,
    RegistrationSet,
    RegistrationPart,
    TaskRun,
    OutboxEvent,
)
_PAST = f"{LONG_AGO:%Y-%m-%d %H:%M:%S}"
_DIGEST_LENGTH = 64

# What the general rule would get wrong, in SQL: a mark that only grows goes on above what
# was written under it, an end stays an end, a process counts as heard of just now.
_CURES: dict[tuple[type[models.Model], str], str] = {
    (SchedulerState, "term"): "1 + (SELECT coalesce(max(term), 0) FROM {run})",
    (SchedulerState, "generation"): "(SELECT coalesce(max(generation), 0) FROM {set})",
    (SchedulerState, "epoch"): "1 + (SELECT coalesce(max(epoch), 0) FROM {run})"
    " + (SELECT coalesce(max(epoch), 0) FROM {task})",
    (SchedulerInstance, "heartbeat_at"): "datetime('now')",
    (SchedulerInstance, "stopped_at"): "datetime('now')",
    (ScheduledTask, "running_run"): "(SELECT r.id FROM {run} r WHERE r.scheduler_id ="
    " {task}.scheduler_id AND r.running_slot = {task}.name)",
    (TaskOverride, "ended_at"): "datetime('now')",
    (RegistrationSet, "generation"): "-rowid",
    # Registrations that are lost are not none at all.
    (RegistrationSet, "tasks"): "'[null]'",
    (RegistrationSet, "parts"): "'[null]'",
    (TaskRun, "scheduled_for"): f"strftime('%Y-%m-%d %H:%M:%f', '{_PAST}', rowid || ' seconds')",
}


@dataclass(frozen=True, slots=True)
class _Row:
    rowid: int
    unreadable: list[models.Field[Any, Any]]


def mending(using: str, deployment: str, act: Callable[[], _T]) -> _T:
    """Do something; where a damaged row foils it, mend the row and do it once more."""
    try:
        return act()
    except (*_FAILS, OperationalError) as error:
        if not _is_of_a_row(error) or not mend(using, deployment):
            raise
    return act()


def _is_of_a_row(error: Exception) -> bool:
    """Tell a value that cannot be read from whatever else a database refuses."""
    return not isinstance(error, OperationalError) or "malformed JSON" in str(error)


def mend(using: str, deployment: str, *, history: bool = True) -> int:
    """Return every column of a deployment that cannot be read a value that can be.

    Returns:
        the number of rows that were mended.
    """
    connection, looked = connections[using], _MODELS if history else _PRESENT
    if not database.keeps_anything(using):
        return 0
    with database.atomic(using):
        # A write first: it takes the lock that the guard of the deployment takes.
        SchedulerState.objects.using(using).filter(deployment=deployment).update(
            deployment=F("deployment")
        )
        return sum(_mend_table(connection, model, deployment) for model in looked)


def _mend_table(connection: BaseDatabaseWrapper, model: type[models.Model], deployment: str) -> int:
    found = _unreadable(connection, model, deployment)
    for row in found:
        # The next set writes a part that is not there; one that is, it would share.
        if model is RegistrationPart or any(_is_key(field) for field in row.unreadable):
            _delete(connection, model, row)
        else:
            _cure(connection, model, row)
    return len(found)


def _is_key(field: models.Field[Any, Any]) -> bool:
    return field.primary_key or field.name == "name"


def _unreadable(
    connection: BaseDatabaseWrapper, model: type[models.Model], deployment: str
) -> list[_Row]:
    fields = [field for field in model._meta.concrete_fields if field.name != "scheduler"]
    checks = [_is_sound(field, connection.ops.quote_name(str(field.column))) for field in fields]
    own = "deployment = %s"
    if model is not SchedulerState:
        own = f"scheduler_id IN (SELECT id FROM {SchedulerState._meta.db_table} WHERE {own})"
    sql = (
        f"SELECT rowid, {', '.join(checks)} FROM {model._meta.db_table}"
        f" WHERE {own} AND NOT ({' AND '.join(checks)})"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [deployment])
        return [
            _Row(rowid, [f for f, sound in zip(fields, flags, strict=True) if not sound])
            for rowid, *flags in cursor.fetchall()
        ]


def _is_sound(field: models.Field[Any, Any], column: str) -> str:
    """Return the SQL that tells whether a column can be read; it is never null."""
    read: Any = field.target_field if isinstance(field, models.ForeignKey) else field
    check = f"typeof({column}) = 'text'"
    if isinstance(read, models.DateTimeField):
        # A calendar knows the date (as a number first, or a 30 February stands), a clock
        # the time, and it is written as its order demands.
        check += f" AND coalesce(date(julianday({column})) = substr({column}, 1, 10), 0)"
        check += f" AND {column} = trim({column}) AND {column} >= '0001'"
        check += f" AND substr({column}, 11, 3) BETWEEN ' 00' AND ' 23'"
    elif isinstance(read, models.UUIDField):
        check += f" AND length({column}) = 32 AND {column} NOT GLOB '*[^0-9a-fA-F]*'"
    elif isinstance(read, models.JSONField):
        check += f" AND json_valid({column})"
    elif isinstance(read, models.BooleanField):
        check = f"typeof({column}) = 'integer' AND {column} IN (0, 1)"
    elif isinstance(read, models.DurationField | models.IntegerField):
        check = f"typeof({column}) = 'integer'"
    return f"({column} IS NULL OR ({check}))" if field.null else f"({check})"


def _cure(connection: BaseDatabaseWrapper, model: type[models.Model], row: _Row) -> None:
    pairs = [(str(field.column), *_cured(model, field)) for field in row.unreadable]
    if model is ScheduledTask:
        names = ", ".join(field.name for field in row.unreadable)
        pairs = [pair for pair in pairs if pair[0] not in ("digest", "wake_at")]
        # Told to whoever evaluates it next, and that is to be at once.
        pairs.append(("digest", "%s", [f"{UNREADABLE}{names}"[:_DIGEST_LENGTH]]))
        pairs.append(("wake_at", "%s", [_PAST]))
    sets = ", ".join(f"{connection.ops.quote_name(column)} = {sql}" for column, sql, _ in pairs)
    _execute(
        connection,
        f"UPDATE {model._meta.db_table} SET {sets} WHERE rowid = %s",
        [*(value for *_, values in pairs for value in values), row.rowid],
    )


def _cured(model: type[models.Model], field: models.Field[Any, Any]) -> tuple[str, Sequence[Any]]:
    """Return the value that a column gets, as SQL and its parameters."""
    sql = _CURES.get((model, field.name))
    if sql is not None:
        tables = {
            "run": TaskRun._meta.db_table,
            "task": ScheduledTask._meta.db_table,
            "set": RegistrationSet._meta.db_table,
        }
        # The signs of a date's format are no places of parameters.
        return sql.format(**tables).replace("%", "%%"), []
    return "%s", [_neutral(field)]


def _neutral(field: models.Field[Any, Any]) -> object:
    if field.null:
        return None
    if isinstance(field, models.DateTimeField):
        return _PAST
    if isinstance(field, models.UUIDField):
        return uuid.uuid4().hex
    if isinstance(field, models.JSONField):
        return json.dumps(field.get_default())
    if isinstance(field, models.BooleanField):
        return bool(field.get_default())
    return 0 if isinstance(field, models.DurationField | models.IntegerField) else ""


def _delete(connection: BaseDatabaseWrapper, model: type[models.Model], row: _Row) -> None:
    """Remove a row that nobody can be the one of; a declared task gets another."""
    table = model._meta.db_table
    for relation in _relations(model):
        column = connection.ops.quote_name(str(relation.column))
        _execute(
            connection,
            f"UPDATE {relation.model._meta.db_table} SET {column} = NULL"
            f" WHERE {column} = (SELECT id FROM {table} WHERE rowid = %s)",
            [row.rowid],
        )
    _execute(connection, f"DELETE FROM {table} WHERE rowid = %s", [row.rowid])


def _relations(model: type[models.Model]) -> Iterable[models.Field[Any, Any]]:
    for other in _MODELS:
        for field in other._meta.concrete_fields:
            if field.null and field.related_model is model:
                yield field


def _execute(connection: BaseDatabaseWrapper, sql: str, parameters: Sequence[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
