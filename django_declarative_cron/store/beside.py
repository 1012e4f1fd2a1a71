"""A row that is written beside another one, on one way to the server where that can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper


def save_with(using: str, row: models.Model, fields: Sequence[str], beside: models.Model) -> None:
    """Write some fields of a stored row and a new row beside it, in one statement if possible.

    Args:
        using: database alias; in a transaction.
        row: the stored row; it may refer to the new one.
        fields: names of the fields to write.
        beside: the new row, with its primary key.
    """
    connection = connections[using]
    if connection.vendor != "postgresql":
        beside.save(using=using, force_insert=True)
        row.save(using=using, update_fields=list(fields))
        return
    # Worded by us: each process asks it once, and for that once Django takes long.
    quote, pk = connection.ops.quote_name, row._meta.pk
    new = _prepared(connection, beside, beside._meta.concrete_fields)
    mine = _prepared(connection, row, [f for f in row._meta.concrete_fields if f.name in fields])
    sql = (
        f"WITH new AS (INSERT INTO {quote(beside._meta.db_table)} ({', '.join(new)})"
        f" VALUES ({', '.join(['%s'] * len(new))})) UPDATE {quote(row._meta.db_table)}"
        f" SET {', '.join(f'{column} = %s' for column in mine)} WHERE {quote(str(pk.column))} = %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*new.values(), *mine.values(), row.pk])


def _prepared(
    connection: BaseDatabaseWrapper, row: models.Model, fields: Iterable[models.Field[Any, Any]]
) -> dict[str, Any]:
    """Give the values of a row as the driver takes them, by columns."""
    return {
        connection.ops.quote_name(str(field.column)): field.get_db_prep_save(
            getattr(row, field.attname), connection
        )
        for field in fields
    }
