"""Rows with one of many keys: sent as one parameter, so that the query is worded once.

PostgreSQL takes an array and SQLite a JSON text. What other databases are asked names every
key, and is worded anew each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from django.db import connections, models
from django.db.models import F
from django.db.models.lookups import In, Lookup

from .prepared import Asked, Prepared

M = TypeVar("M", bound=models.Model)

_AS_ONE = ("postgresql", "sqlite")


class Among(Lookup):
    """Compare a field with many keys, as a condition of ``filter``.

    Args:
        field: its name.
        keys: plain values.
    """

    prepare_rhs = False

    def __init__(self, field: str, keys: Collection[Any]) -> None:
        super().__init__(F(field), list(keys))

    def as_postgresql(self, compiler: Any, connection: Any) -> Any:
        """Compare with an array."""
        field, parameters = self.process_lhs(compiler, connection)
        return f"{field} = ANY(%s)", (*parameters, _spelled(connection.vendor, self.rhs))

    def as_sqlite(self, compiler: Any, connection: Any) -> Any:
        """Compare with the values of a JSON text."""
        field, parameters = self.process_lhs(compiler, connection)
        keys = _spelled(connection.vendor, self.rhs)
        return f"{field} IN (SELECT value FROM json_each(%s))", (*parameters, keys)

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        """Compare with each."""
        return In(self.lhs, self.rhs).as_sql(compiler, connection)


def fetch(
    prepared: Prepared[M],
    using: str,
    make: Callable[[], models.QuerySet[M]],
    keys: Collection[Any],
    before: Sequence[Any] = (),
    after: Sequence[Any] = (),
) -> list[M]:
    """Run a query that has one condition ``Among``, and is worded once where that can be.

    Args:
        prepared: the query.
        using: database alias; in a transaction, where the query locks.
        make: makes it.
        keys: of ``Among``.
        before: parameters before those, as the driver takes them.
        after: parameters after those.
    """
    return asked(prepared, using, make, keys, before, after).fetch(using)


def asked(
    prepared: Prepared[M],
    using: str,
    make: Callable[[], models.QuerySet[M]],
    keys: Collection[Any],
    before: Sequence[Any] = (),
    after: Sequence[Any] = (),
) -> Asked[M]:
    """Give a query that has one condition ``Among``, to be asked beside others.

    Args:
        prepared: the query.
        using: database alias.
        make: makes it.
        keys: of ``Among``.
        before: parameters before those, as the driver takes them.
        after: parameters after those.
    """
    vendor = connections[using].vendor
    if vendor not in _AS_ONE:
        return Asked(prepared, make, None)
    return Asked(prepared, make, [*before, _spelled(vendor, keys), *after])


def _spelled(vendor: str, keys: Collection[Any]) -> Any:
    return json.dumps(list(keys)) if vendor == "sqlite" else list(keys)
