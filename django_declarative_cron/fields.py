"""Model fields whose stored value does not depend on the project's settings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.functions.datetime import TruncBase
from django.utils import timezone

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class InstantField(models.DateTimeField):  # type: ignore[type-arg]
    """An aware UTC ``datetime``, stored as UTC with and without ``USE_TZ``.

    Django's own field stores local times where ``USE_TZ`` is off, and an hour of
    them happens twice a year; an instant must survive that hour.
    """

    def to_python(self, value: Any) -> datetime | None:
        """Read a value as an instant in UTC."""
        parsed = super().to_python(value)
        return None if parsed is None else as_utc(parsed)

    def get_prep_value(self, value: Any) -> Any:
        """Prepare an instant for a query, whatever the database."""
        if value is None or hasattr(value, "resolve_expression"):
            return value
        return self.to_python(value)

    def get_db_prep_value(
        self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False
    ) -> Any:
        """Write an instant as the database stores it: UTC, without a zone where it has none."""
        if not prepared:
            value = self.get_prep_value(value)
        if not isinstance(value, datetime):
            return value
        if connection.vendor == "postgresql":
            return value
        return connection.ops.adapt_datetimefield_value(value.replace(tzinfo=None))

    def db_check(self, connection: BaseDatabaseWrapper) -> str | None:
        """Have the database refuse values that no driver can read.

        PostgreSQL would store ``infinity``, and SQLite any text. In a row that each pass reads,
        such a value would keep every task from being started.
        """
        column = connection.ops.quote_name(str(self.column))
        if connection.vendor == "postgresql":
            return f"{column} BETWEEN '{_FIRST.isoformat()}' AND '{_LAST.isoformat()}'"
        if connection.vendor == "sqlite":
            # Of the fraction of a second SQLite would round the last one up.
            second = f"substr({column}, 1, 19)"
            return (
                f"datetime({second}, '+0 days') IS {second} AND {column} > '0001'"
                f" AND rtrim(substr({column}, 20), '0123456789') IN ('', '.')"
            )
        return None

    def from_db_value(
        self, value: Any, expression: Any, connection: BaseDatabaseWrapper
    ) -> datetime | None:
        """Read what the database stored as UTC."""
        if value is None or value.tzinfo is UTC:
            return value  # type: ignore[no-any-return]
        if connection.vendor == "postgresql":
            return as_utc(value)
        if isinstance(expression, TruncBase) and value.tzinfo is not None:
            # A truncated value is aware already.
            return as_utc(value)
        return value.replace(tzinfo=UTC)  # type: ignore[no-any-return]

    def get_db_converters(self, connection: BaseDatabaseWrapper) -> list[Any]:
        """Return the converters of values from this connection."""
        return [self._from_count] if _is_counted(connection) else [self.from_db_value]

    def select_format(self, compiler: SQLCompiler, sql: str, params: Any) -> tuple[str, Any]:
        """Have PostgreSQL return microseconds where Django would return local times.

        Subqueries keep the type of the column, because their values are compared.
        """
        if _is_counted(compiler.connection) and not compiler.query.subquery:
            return f"(EXTRACT(EPOCH FROM {sql}) * 1000000)::bigint", params
        return sql, params

    def _from_count(
        self, value: Any, expression: Any, connection: BaseDatabaseWrapper
    ) -> datetime | None:
        # Rows of raw SQL and of ``RETURNING`` bypass ``select_format``: they have local times.
        if isinstance(value, int):
            return _EPOCH + timedelta(microseconds=value)
        return self.from_db_value(value, expression, connection)


class ColumnTypes(models.BaseConstraint):
    """Have SQLite refuse values of another type than the column's, as other databases do.

    Such a value could not be fetched, and would keep the scheduler from reading the others.
    """

    def __eq__(self, other: object) -> bool:
        """Compare by name: nothing else distinguishes two of them."""
        return isinstance(other, ColumnTypes) and self.name == other.name

    def __hash__(self) -> int:
        """Return the hash of what is compared."""
        return hash(self.name)

    def constraint_sql(  # type: ignore[override]
        self, model: Any, schema_editor: Any
    ) -> str | None:
        """Return the check of all columns, ``None`` for databases whose columns have types."""
        if schema_editor.connection.vendor != "sqlite":
            return None
        quote = schema_editor.quote_name
        checks = [_type_check(field, quote(field.column)) for field in model._meta.concrete_fields]
        return f"CONSTRAINT {quote(self.name)} CHECK ({' AND '.join(checks)})"

    def create_sql(self, model: Any, schema_editor: Any) -> None:  # type: ignore[override]
        """Return nothing: SQLite makes the whole table anew to change a constraint."""

    def remove_sql(self, model: Any, schema_editor: Any) -> None:  # type: ignore[override]
        """Return nothing, likewise."""

    def validate(self, model: Any, instance: Any, exclude: Any = None, using: str = "") -> None:
        """Accept every row: fields validate their values."""


def _type_check(field: Any, column: str) -> str:
    if isinstance(field, models.ForeignKey):
        field = field.target_field
    if isinstance(field, models.BooleanField):
        return f"{column} IN (0, 1)"
    if isinstance(field, models.IntegerField | models.DurationField):
        return f"typeof({column}) IN ('integer', 'null')"
    if isinstance(field, models.UUIDField):
        return f"length({column}) = 32 AND {column} NOT GLOB '*[^0-9a-f]*'"
    return f"typeof({column}) IN ('text', 'null')"


class NameField(models.CharField):  # type: ignore[type-arg]
    """A task name that is compared letter for letter on every database."""

    _collations = {"mysql": "utf8mb4_0900_bin", "mariadb": "utf8mb4_nopad_bin"}

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        """Add the collation that distinguishes letters."""
        parameters = super().db_parameters(connection)
        if connection.vendor == "mysql":
            flavour = "mariadb" if getattr(connection, "mysql_is_mariadb", False) else "mysql"
            parameters["collation"] = self._collations[flavour]
        return parameters


def as_utc(value: datetime) -> datetime:
    """Express an instant in UTC; a naive value is read in the project's zone."""
    if timezone.is_naive(value):
        value = timezone.make_aware(value, timezone.get_default_timezone())
    return value.astimezone(UTC)


def _is_counted(connection: BaseDatabaseWrapper) -> bool:
    # Without ``USE_TZ``, the connection returns naive datetimes.
    return connection.vendor == "postgresql" and connection.timezone is None
