"""Queries that every pass asks, worded once: wording them takes Django longer than the answer.

``peek`` does the same for the idle look, which reads no models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import connections, models, transaction

from ..fields import DataField, timezone_is_dropped
from . import database, limits, planned
from .made import made

M = TypeVar("M", bound=models.Model)


@dataclass(frozen=True, slots=True)
class Worded:
    """A query as SQL, and how its rows are read.

    Args:
        sql: with places for parameters.
        selected: the expressions that are selected, in order.
        converted: places of those whose values fields read, with the fields' ways to do that,
            but for texts that are understood when somebody asks for them.
        names: attributes of the model among them.
        columns: where those stand.
        beside: where each annotation stands, by name.
    """

    sql: str
    selected: list[Any]
    converted: list[tuple[int, list[Callable[..., Any]]]]
    names: list[str]
    columns: slice
    beside: dict[str, int]


class Prepared(Generic[M]):
    """A query of one shape, with other parameters each time.

    Args:
        model: whose rows are read, complete.
    """

    def __init__(self, model: type[M]) -> None:
        self.model = model
        self._known: dict[tuple[str, bool], Worded] = {}

    def get_ready(self, using: str, make: Callable[[], models.QuerySet[M]]) -> None:
        """Word it, unless that is done: the first to run it need not.

        Args:
            using: database alias.
            make: makes the query.
        """
        if (using, timezone_is_dropped(connections[using])) not in self._known:
            # Django words no query that locks outside of a transaction.
            with database.direct(using), transaction.atomic(using=using):
                self._word(using, make)

    def fetch(
        self, using: str, make: Callable[[], models.QuerySet[M]], parameters: Sequence[Any]
    ) -> list[M]:
        """Run it.

        Args:
            using: database alias; in a transaction, where the query locks.
            make: makes the query, where it has not been worded yet.
            parameters: of this time, as the driver takes them, in the order of the text.
        """
        worded = self.worded(using, make)
        with connections[using].cursor() as cursor:
            limits.read_instants_plainly(cursor)
            cursor.execute(worded.sql, parameters)
            return self.read(using, worded, cursor.fetchall())

    def worded(self, using: str, make: Callable[[], models.QuerySet[M]]) -> Worded:
        """Give it as SQL, worded the first time.

        Args:
            using: database alias; in a transaction, where the query locks.
            make: makes the query.
        """
        known = self._known.get((using, timezone_is_dropped(connections[using])))
        return self._word(using, make) if known is None else known

    def _word(self, using: str, make: Callable[[], models.QuerySet[M]]) -> Worded:
        key = using, timezone_is_dropped(connections[using])
        self._known[key] = _worded(make(), using)
        return self._known[key]

    def read(self, using: str, worded: Worded, found: list[Any]) -> list[M]:
        """Give the instances of what was found.

        Args:
            using: database alias.
            worded: what was asked.
            found: rows as the driver gives them.
        """
        columns = _converted(using, worded, found)
        names = [*worded.names, *worded.beside]
        return [
            made(self.model, dict(zip(names, values, strict=True)), using)
            for values in zip(*columns, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Asked(Generic[M]):
    """What is asked this time.

    Args:
        prepared: the query.
        make: makes it, where it has not been worded yet.
        parameters: as the driver takes them; ``None`` where it is worded anew each time.
    """

    prepared: Prepared[M]
    make: Callable[[], models.QuerySet[M]]
    parameters: Sequence[Any] | None

    def fetch(self, using: str) -> list[M]:
        """Ask.

        Args:
            using: database alias; in a transaction, where the query locks.
        """
        if self.parameters is None:
            return list(self.make())
        return self.prepared.fetch(using, self.make, self.parameters)


def together(using: str, asked: Sequence[Asked[Any]], *, is_ours: bool) -> list[list[Any]]:
    """Ask several things one after the other, on one way to the server if it may be.

    Each sees, and locks, what is stored after the one before it.

    Args:
        using: database alias; in a transaction.
        asked: what is asked.
        is_ours: the transaction is not a part of somebody else's, and may be done again.
    """
    connection = connections[using]
    if len(asked) < 2 or not limits.takes_several(connection):
        return [each.fetch(using) for each in asked]
    worded = [each.prepared.worded(using, each.make) for each in asked]
    parameters = [value for each in asked for value in each.parameters or ()]
    found: list[list[Any]] = []
    with connection.cursor() as cursor:
        limits.read_instants_plainly(cursor)
        texts = [each.sql for each in worded]
        if is_ours:
            texts = [planned.with_places(connection, sql) for sql in texts]
        cursor.execute("; ".join(texts), parameters)
        for each, question in zip(asked, worded, strict=True):
            if found:
                cursor.nextset()
            while not limits.has_rows(cursor):
                cursor.nextset()  # Of what lets the session keep it.
            found.append(each.prepared.read(using, question, cursor.fetchall()))
    return found


def _converted(using: str, worded: Worded, found: list[Any]) -> list[Sequence[Any]]:
    """Give the columns of rows as fields read them: a column at a time, no value alone."""
    if not found:
        return []
    connection, columns = connections[using], list(zip(*found, strict=True))
    for place, ways in worded.converted:
        if columns[place].count(None) == len(found):
            continue
        expression = worded.selected[place]
        # The backend's ways belong to its connection.
        for convert in (*connection.ops.get_db_converters(expression), *ways):
            values = [convert(value, expression, connection) for value in columns[place]]
            columns[place] = tuple(values)
    return [*columns[worded.columns], *(columns[place] for place in worded.beside.values())]


def _worded(rows: models.QuerySet[Any], using: str) -> Worded:
    compiler = rows.query.get_compiler(using)
    sql, _ = compiler.as_sql()
    places = compiler.klass_info["select_fields"]
    columns = slice(places[0], places[-1] + 1)
    selected = [each[0] for each in compiler.select]
    fields = {place: selected[place].target for place in places}
    # What may be damaged is found out as it is read.
    is_sound = not database.keeps_anything(using)
    unread = {at for at, each in fields.items() if is_sound and isinstance(each, DataField)}
    names = [each.unread if at in unread else each.attname for at, each in fields.items()]
    converted = [
        (at, selected[at].get_db_converters(connections[using]))
        for at in compiler.get_converters(selected)
        if at not in unread
    ]
    return Worded(sql, selected, converted, names, columns, dict(compiler.annotation_col_map))
