"""Rows of a contender's Django tables, seen from outside of its models."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.db.models import Model


def empty(*models: type[Model]) -> None:
    """Remove every row, and those that refer to them.

    Args:
        models: whose.
    """
    from django.db import connection

    names = ", ".join(connection.ops.quote_name(model._meta.db_table) for model in models)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"TRUNCATE {names} RESTART IDENTITY CASCADE")
        else:
            for model in models:
                model._base_manager.all().delete()


def versions(model: type[Model]) -> dict[object, object]:
    """Give for each row something that is another once the row was written.

    Args:
        model: whose rows.
    """
    from django.db import connection

    table = connection.ops.quote_name(model._meta.db_table)
    if connection.vendor != "postgresql":
        return {row[0]: row for row in model._base_manager.values_list()}
    assert model._meta.pk
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {model._meta.pk.column}, ctid::text FROM {table}")
        return dict(cursor.fetchall())
