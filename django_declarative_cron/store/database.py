"""Which database is ours, and what it calls the time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from django.db import connections, models, router, transaction
from django.db.models.functions import Now

from ..fields import InstantField
from ..models import ScheduledTask

_CHUNK = 1000


class DatabaseNow(Now):
    """Give the database's time as an aware UTC instant on every database."""

    output_field = InstantField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="CLOCK_TIMESTAMP()", **context)

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="UTC_TIMESTAMP(6)", **context)


def alias() -> str:
    """Give the alias that decides and writes; replicas are never asked."""
    return router.db_for_write(ScheduledTask)


def atomic(using: str) -> transaction.Atomic:
    """Open one transaction of ours, durable in what it commits.

    Args:
        using: database alias.
    """
    return transaction.atomic(using=using)


def upsert(using: str, rows: Iterable[models.Model], fields: list[str]) -> None:
    """Write some fields of many stored rows in one statement.

    Args:
        using: database alias.
        rows: instances of one model, read in this transaction.
        fields: names of the fields to write.
    """
    rows = list(rows)
    if not rows:
        return
    manager = type(rows[0])._base_manager.using(using)
    if connections[using].features.supports_update_conflicts_with_target:
        manager.bulk_create(rows, update_conflicts=True, update_fields=fields, unique_fields=["id"])
    else:
        manager.bulk_create(rows, update_conflicts=True, update_fields=fields)


def insert(using: str, rows: Iterable[models.Model]) -> None:
    """Write new rows, in as few statements as the database takes.

    Args:
        using: database alias.
        rows: instances of one model.
    """
    rows = list(rows)
    if rows:
        type(rows[0])._base_manager.using(using).bulk_create(rows, batch_size=5000)


def chunks(names: Iterable[str]) -> Iterator[list[str]]:
    """Give names in lists that fit into one statement.

    Args:
        names: any number of them.
    """
    iterator = iter(names)
    while chunk := list(islice(iterator, _CHUNK)):
        yield chunk
