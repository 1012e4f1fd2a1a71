"""Many rows in one statement of PostgreSQL: one array for each column.

Of a column that is the same in all rows goes the one value: half of the time that a thousand
rows take is spent on spelling them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, cast

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

from ..fields import DataField
from . import limits
from .last import OTHERS_FOLLOW, Last


def values_of(rows: Sequence[models.Model], attribute: str) -> list[Any]:
    """Give the values of an attribute, of one row after the other.

    Args:
        rows: instances of one model.
        attribute: its name.
    """
    return list(map(attrgetter(attribute), rows))


def texts_of(rows: Sequence[models.Model], field: models.Field[Any, Any]) -> list[str | None]:
    """Give data as text; what a row carries as text is not understood for that.

    Args:
        rows: instances of one model.
        field: which data.
    """
    carried = field.unread if isinstance(field, DataField) else None
    encoder = field.encoder if isinstance(field, models.JSONField) else None

    def text(row: models.Model) -> str | None:
        if carried in (values := vars(row)):
            return cast(str, values[carried])
        value = getattr(row, field.attname)
        return None if value is None else json.dumps(value, cls=encoder)

    return list(map(text, rows))


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


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A field whose value is found elsewhere.

    Args:
        found: SQL of that value, by ``new.nth``.
        pointer: name of the field.
        places: of each row, ``nth``; ``None`` where the row has the value.
    """

    found: str
    pointer: str
    places: Sequence[int | None]


def _table(
    connection: BaseDatabaseWrapper,
    rows: Sequence[models.Model],
    fields: Sequence[models.Field[Any, Any]],
    places: Sequence[int | None] = (),
) -> _Table:
    table = _Table({}, "", [], [])
    names, types = [], []
    for field in fields:
        name = connection.ops.quote_name(str(field.column))
        type_ = _type_of(type(rows[0]), field.attname, connection.alias)
        # The one field of ours whose values the driver does not take as they are; and of
        # data, what is equal need not be the same: 1 and True.
        is_data = isinstance(field, models.JSONField)
        values = texts_of(rows, field) if is_data else values_of(rows, field.attname)
        if table.columns and values.count(values[0]) == len(values):
            table.columns[name] = f"%s::{type_}"
            table.constants.append(values[0])
        else:
            table.columns[name] = f"new.{name}"
            table.arrays.append(_spelled(values))
            names.append(name)
            types.append(f"%s::{type_}[]")
    if places:
        table.arrays.append(list(places))
        names.append("nth")
        types.append("%s::integer[]")
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


def insert(using: str, rows: Sequence[models.Model]) -> None:
    """Write new rows; they get their ids.

    Args:
        using: database alias.
        rows: instances of one model, without primary keys.
    """
    connection = connections[using]
    sql, parameters = _insert(connection, rows)
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        _take_keys(using, rows, cursor.fetchall())


def insert_pointed(
    using: str,
    rows: Sequence[models.Model],
    pointing: Sequence[models.Model],
    names: Sequence[str],
    pointer: str,
    places: Sequence[int | None],
    last: Last = OTHERS_FOLLOW,
) -> None:
    """Write new rows, and stored ones that point at them, in one statement.

    Args:
        using: database alias.
        rows: the new ones; they get their ids.
        pointing: instances of one model, read in this transaction.
        names: of their fields to write; ``pointer`` is among them.
        pointer: name of the field that holds the id of a new row.
        places: which of the new rows, counted from 1; ``None`` for one whose field is right.
        last: what goes behind it.
    """
    connection = connections[using]
    new, parameters = _insert(connection, rows)
    key = _quoted(connection, rows[0]._meta.pk)
    place = _Numbered("keys.found[new.nth]", pointer, places)
    changed, more = _update(connection, pointing, names, place)
    sql = (
        f"WITH begun AS ({new}), keys AS (SELECT array_agg({key}) AS found FROM begun),"
        f" pointed AS ({changed}) SELECT {key} FROM begun"
    )
    with connection.cursor() as cursor:
        last.send(cursor, [sql], [*parameters, *more])
        while not limits.has_rows(cursor):
            cursor.nextset()  # Of what lets the session keep it.
        _take_keys(using, rows, cursor.fetchall())
        last.read(cursor)


def _insert(connection: BaseDatabaseWrapper, rows: Sequence[models.Model]) -> tuple[str, list[Any]]:
    options = rows[0]._meta
    written = [field for field in options.concrete_fields if not field.primary_key]
    table = _table(connection, rows, written)
    sql = (
        f"INSERT INTO {connection.ops.quote_name(options.db_table)} ({', '.join(table.columns)})"
        f" SELECT {', '.join(table.columns.values())} FROM {table.source}"
        f" RETURNING {_quoted(connection, options.pk)}"
    )
    return sql, [*table.constants, *table.arrays]


def _take_keys(using: str, rows: Sequence[models.Model], keys: Iterable[tuple[Any]]) -> None:
    for row, (key,) in zip(rows, keys, strict=True):
        row.pk = key
        row._state.adding, row._state.db = False, using


def _quoted(connection: BaseDatabaseWrapper, field: models.Field[Any, Any]) -> str:
    return str(connection.ops.quote_name(str(field.column)))


def update(
    using: str,
    *updates: tuple[Sequence[models.Model], Sequence[str]],
    last: Last = OTHERS_FOLLOW,
) -> None:
    """Write fields of stored rows, of several models on one way where that can be.

    Args:
        using: database alias.
        updates: instances of one model with the names of their fields; more than one only where
            several statements may be sent as one text.
        last: what goes behind them.
    """
    connection = connections[using]
    texts, parameters = [], list[Any]()
    for rows, names in updates:
        sql, more = _update(connection, rows, names)
        texts.append(sql)
        parameters += more
    with connection.cursor() as cursor:
        last.send(cursor, texts, parameters)
        last.read(cursor)


def _update(
    connection: BaseDatabaseWrapper,
    rows: Sequence[models.Model],
    names: Sequence[str],
    numbered: _Numbered | None = None,
) -> tuple[str, list[Any]]:
    options = rows[0]._meta
    known: dict[str, Any] = {field.name: field for field in options.concrete_fields}
    places = [] if numbered is None else numbered.places
    table = _table(connection, rows, [options.pk, *(known[name] for name in names)], places)
    if numbered is not None:
        pointer = _quoted(connection, known[numbered.pointer])
        table.columns[pointer] = f"coalesce({numbered.found}, {table.columns[pointer]})"
    name, (pk, *columns) = connection.ops.quote_name(options.db_table), table.columns
    further = "" if numbered is None else ", keys"
    sql = (
        f"UPDATE {name} SET {', '.join(f'{c} = {table.columns[c]}' for c in columns)}"
        f" FROM {table.source}{further} WHERE {name}.{pk} = new.{pk}"
    )
    return sql, [*table.constants, *table.arrays]
