"""Many rows in one statement: new ones, and those that were read and have changed.

PostgreSQL gets one array for each column, and of a column that is the same in all rows the
one value: half of the time that a thousand rows take is spent on spelling them. SQLite has no
way to a server to be spared: it is given one row after the other, of those that are there
already. All else is what Django makes of ``bulk_create``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import compress
from operator import attrgetter, itemgetter
from typing import Any, Generic, TypeVar, cast

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

from ..fields import DataField
from . import limits
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
                _insert_columns(using, rows[first : first + _MOST])
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
            _update_columns(using, (rows, fields))
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

    def write_with(self, using: str, other: Read[Any]) -> None:
        """Write what changed here and in other rows, on one way to the server if it may be.

        Args:
            using: database alias.
            other: rows of another model.
        """
        both = [(self._rows, self._changed()), (other._rows, other._changed())]
        work = [(rows, names) for rows, names in both if names]
        if len(work) == 2 and limits.takes_several(connections[using]):
            _update_columns(using, *work)
            return
        for rows, names in work:
            upsert(using, rows, names)

    def _changed(self) -> list[str]:
        columns = zip(self._before, _columns(self._rows, self._fields), strict=True)
        is_other = [before != after for before, after in columns]
        return list(compress(self._fields, is_other))


def _columns(rows: Sequence[models.Model], attributes: Sequence[str]) -> list[tuple[Any, ...]]:
    """Give the values of several attributes, of each for all rows; none where there are no rows."""
    return list(zip(*map(itemgetter(*attributes), map(vars, rows)), strict=True))


def _texts(rows: Sequence[models.Model], field: models.Field[Any, Any]) -> list[str | None]:
    """Give data as text; what a row carries as text is not understood for that."""
    carried = field.unread if isinstance(field, DataField) else None
    encoder = field.encoder if isinstance(field, models.JSONField) else None

    def text(row: models.Model) -> str | None:
        if carried in (values := vars(row)):
            return cast(str, values[carried])
        value = getattr(row, field.attname)
        return None if value is None else json.dumps(value, cls=encoder)

    return list(map(text, rows))


def _values(rows: Sequence[models.Model], attribute: str) -> list[Any]:
    return list(map(attrgetter(attribute), rows))


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
    columns = []
    for field in fields:
        if isinstance(field, DataField):
            columns.append(_texts(rows, field))
            continue
        values, prepare = _values(rows, field.attname), field.get_db_prep_save
        if all(value is values[0] for value in values):
            columns.append([prepare(values[0], connection)] * len(values))
        else:
            columns.append([prepare(value, connection) for value in values])
    return list(zip(*columns, strict=True))


# --- PostgreSQL ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows as SQL.

    Args:
        columns: names, quoted, each with what stands for its value.
        source: what to select from; the first column is always in it.
        constants: parameters of the values.
        arrays: parameters of the source.
    """

    columns: dict[str, str]
    source: str
    constants: list[Any]
    arrays: list[Any]


def _table(
    connection: BaseDatabaseWrapper,
    rows: Sequence[models.Model],
    fields: Sequence[models.Field[Any, Any]],
) -> _Table:
    table = _Table({}, "", [], [])
    names, types = [], []
    for field in fields:
        name = connection.ops.quote_name(str(field.column))
        type_ = _type_of(type(rows[0]), field.attname, connection.alias)
        # The one field of ours whose values the driver does not take as they are; and of
        # data, what is equal need not be the same: 1 and True.
        is_data = isinstance(field, models.JSONField)
        values = _texts(rows, field) if is_data else _values(rows, field.attname)
        if table.columns and values.count(values[0]) == len(values):
            table.columns[name] = f"%s::{type_}"
            table.constants.append(values[0])
        else:
            table.columns[name] = f"new.{name}"
            table.arrays.append(_spelled(values))
            names.append(name)
            types.append(f"%s::{type_}[]")
    source = f"unnest({', '.join(types)}) AS new ({', '.join(names)})"
    return _Table(table.columns, source, table.constants, table.arrays)


@cache
def _type_of(model: type[models.Model], attribute: str, using: str) -> str:
    """Give the type of a column, without a length: that would cut off what the column refuses."""
    field = {each.attname: each for each in model._meta.concrete_fields}[attribute]
    return str(field.db_type(connections[using])).partition("(")[0]


def _spelled(values: Sequence[Any]) -> Any:
    """Spell an array as the server reads it; the driver would ask how each value is spelled."""
    kinds = set(map(type, values))
    if kinds in ({int}, {datetime}):
        return f"{{{','.join(map(str, values))}}}"
    if kinds == {str}:
        escaped = [value.replace("\\", "\\\\").replace('"', '\\"') for value in values]
        return '{"' + '","'.join(escaped) + '"}'
    return values


def _insert_columns(using: str, rows: Sequence[models.Model]) -> None:
    connection, options = connections[using], rows[0]._meta
    written = [field for field in options.concrete_fields if not field.primary_key]
    table, pk = _table(connection, rows, written), connection.ops.quote_name(str(options.pk.column))
    sql = (
        f"INSERT INTO {connection.ops.quote_name(options.db_table)} ({', '.join(table.columns)})"
        f" SELECT {', '.join(table.columns.values())} FROM {table.source} RETURNING {pk}"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*table.constants, *table.arrays])
        for row, (key,) in zip(rows, cursor.fetchall(), strict=True):
            row.pk = key
            row._state.adding, row._state.db = False, using


def _update_columns(using: str, *updates: tuple[Sequence[models.Model], Sequence[str]]) -> None:
    connection = connections[using]
    texts, parameters = [], list[Any]()
    for rows, names in updates:
        sql, more = _update(connection, rows, names)
        texts.append(sql)
        parameters += more
    with connection.cursor() as cursor:
        cursor.execute("; ".join(texts), parameters)


def _update(
    connection: BaseDatabaseWrapper, rows: Sequence[models.Model], names: Sequence[str]
) -> tuple[str, list[Any]]:
    options = rows[0]._meta
    known: dict[str, Any] = {field.name: field for field in options.concrete_fields}
    table = _table(connection, rows, [options.pk, *(known[name] for name in names)])
    name, (pk, *columns) = connection.ops.quote_name(options.db_table), table.columns
    sql = (
        f"UPDATE {name} SET {', '.join(f'{c} = {table.columns[c]}' for c in columns)}"
        f" FROM {table.source} WHERE {name}.{pk} = new.{pk}"
    )
    return sql, [*table.constants, *table.arrays]
