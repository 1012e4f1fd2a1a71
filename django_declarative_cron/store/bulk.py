"""Many rows in one statement: new ones, and those that were read and have changed.

PostgreSQL gets one array for each column (``columns``). SQLite has no way to a server to be
spared: it is given one row after the other, of those that are there already. All else is what
Django makes of ``bulk_create``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from operator import itemgetter
from typing import Any, Generic, TypeVar

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

from ..fields import DataField
from . import columns, limits
from .last import OTHERS_FOLLOW, Last
from .made import made

_MOST = 5000

M = TypeVar("M", bound=models.Model)


def maker(model: type[M], **common: Any) -> Callable[..., M]:
    """Give what makes instances of a model with the same defaults, found once.

    Args:
        model: of the instances.
        common: what they have in common, by the names of attributes.
    """
    defaults = {field.attname: field.get_default() for field in model._meta.concrete_fields}
    known = defaults | common

    def make(**values: Any) -> M:
        return made(model, known | values)

    return make


def insert(using: str, rows: Iterable[models.Model]) -> None:
    """Write new rows, in as few statements as the database takes; they get their ids.

    Args:
        using: database alias.
        rows: instances of one model, without primary keys.
    """
    rows = list(rows)
    if not rows:
        return
    match connections[using].vendor:
        case "postgresql":
            for first in range(0, len(rows), _MOST):
                columns.insert(using, rows[first : first + _MOST])
        case "sqlite":
            _insert_each(using, rows)
        case _:
            type(rows[0])._base_manager.using(using).bulk_create(rows, batch_size=_MOST)


def upsert(using: str, rows: Iterable[models.Model], fields: Sequence[str]) -> None:
    """Write some fields of many stored rows in one statement.

    Args:
        using: database alias.
        rows: instances of one model, read in this transaction.
        fields: names of the fields to write.
    """
    rows = list(rows)
    if not rows or not fields:
        return
    match connections[using].vendor:
        case "postgresql":
            columns.update(using, (rows, fields))
        case "sqlite":
            _update_each(using, rows, fields)
        case _:
            put(using, rows, fields)


def put(using: str, rows: list[M], fields: Sequence[str]) -> None:
    """Write rows; of those that are there already, some fields only.

    Args:
        using: database alias.
        rows: instances of one model, with their primary keys.
        fields: names of the fields that are written again.
    """
    aimed = connections[using].features.supports_update_conflicts_with_target
    type(rows[0])._base_manager.using(using).bulk_create(
        rows,
        update_conflicts=True,
        update_fields=list(fields),
        unique_fields=["id"] if aimed else None,
    )


class Read(Generic[M]):
    """Rows as they were read, locked, in this transaction: of them is written what changed.

    Args:
        rows: instances of one model, not yet changed.
        fields: names of the fields that may change, two at least.
    """

    def __init__(self, rows: Iterable[M], fields: Sequence[str]) -> None:
        self._rows = list(rows)
        self._fields = fields
        self._before = _columns(self._rows, fields)

    def write(self, using: str, beside: Sequence[str] = ()) -> None:
        """Write the fields that changed in any of the rows.

        Args:
            using: database alias.
            beside: further fields to write, changed or not.
        """
        upsert(using, self._rows, [*beside, *self._changed()])

    def write_pointed(
        self,
        using: str,
        fresh: Sequence[models.Model],
        pointer: str,
        aims: Sequence[tuple[M, models.Model]],
        beside: Sequence[str] = (),
        last: Last = OTHERS_FOLLOW,
    ) -> bool:
        """Write new rows, and with their ids what changed here, in one statement where that can be.

        Args:
            using: database alias.
            fresh: instances of another model, without primary keys; they get them.
            pointer: name of the field that is to hold the id of a new row.
            aims: rows, each with the new row that it is to point at.
            beside: further fields to write, changed or not.
            last: what goes behind it.

        Returns:
            whether that can be; otherwise nothing was written.
        """
        if connections[using].vendor != "postgresql" or not aims or len(fresh) > _MOST:
            return False
        number = {id(row): place for place, row in enumerate(fresh, 1)}
        aimed = {id(row): number[id(aim)] for row, aim in aims}
        places = [aimed.get(id(row)) for row in self._rows]
        names = dict.fromkeys([*beside, *self._changed(), pointer])
        columns.insert_pointed(using, fresh, self._rows, list(names), pointer, places, last)
        return True

    def write_with(self, using: str, other: Read[Any], last: Last = OTHERS_FOLLOW) -> None:
        """Write what changed here and in other rows, on one way to the server if it may be.

        Args:
            using: database alias.
            other: rows of another model.
            last: what goes behind it, unless each is written alone.
        """
        both = [(self._rows, self._changed()), (other._rows, other._changed())]
        work = [(rows, names) for rows, names in both if names]
        if work and limits.takes_several(connections[using]):
            columns.update(using, *work, last=last)
            return
        for rows, names in work:
            upsert(using, rows, names)

    def _changed(self) -> list[str]:
        both = zip(self._before, _columns(self._rows, self._fields), strict=True)
        is_other = [before != after for before, after in both]
        return list(compress(self._fields, is_other))


def _columns(rows: Sequence[models.Model], attributes: Sequence[str]) -> list[tuple[Any, ...]]:
    """Give the values of several attributes, of each for all rows; none where there are no rows."""
    return list(zip(*map(itemgetter(*attributes), map(vars, rows)), strict=True))


# --- SQLite ----------------------------------------------------------------------


def _insert_each(using: str, rows: Sequence[models.Model]) -> None:
    """Write row by row; they get ids in a row, for nobody else writes to the file meanwhile."""
    connection, options = connections[using], rows[0]._meta
    fields = [field for field in options.concrete_fields if not field.primary_key]
    quote = connection.ops.quote_name
    names, places = ", ".join(quote(str(f.column)) for f in fields), ", ".join(["%s"] * len(fields))
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {quote(options.db_table)} ({names}) VALUES ({places})",
            _lines(connection, rows, fields),
        )
        # The driver says nothing of many; the connection itself does.
        last = cursor.execute("SELECT last_insert_rowid()").fetchone()[0]
    for key, row in enumerate(rows, last - len(rows) + 1):
        row.pk = key
        row._state.adding, row._state.db = False, using


def _update_each(using: str, rows: Sequence[models.Model], names: Sequence[str]) -> None:
    """Write row by row, where the database is in this process and no way lies between."""
    connection, options = connections[using], rows[0]._meta
    quote, known = connection.ops.quote_name, {f.name: f for f in options.concrete_fields}
    fields: list[Any] = [*(known[name] for name in names), options.pk]
    changes = ", ".join(f"{quote(str(field.column))} = %s" for field in fields[:-1])
    sql = f"UPDATE {quote(options.db_table)} SET {changes} WHERE {quote(fields[-1].column)} = %s"
    with connection.cursor() as cursor:
        cursor.executemany(sql, _lines(connection, rows, fields))


def _lines(
    connection: BaseDatabaseWrapper,
    rows: Sequence[models.Model],
    fields: Sequence[models.Field[Any, Any]],
) -> list[tuple[Any, ...]]:
    """Give rows as the driver takes them; what is the same in all is made ready once."""
    prepared = []
    for field in fields:
        if isinstance(field, DataField):
            prepared.append(columns.texts_of(rows, field))
            continue
        values, prepare = columns.values_of(rows, field.attname), field.get_db_prep_save
        if all(value is values[0] for value in values):
            prepared.append([prepare(values[0], connection)] * len(values))
        else:
            prepared.append([prepare(value, connection) for value in values])
    return list(zip(*prepared, strict=True))
