"""Model fields whose stored value does not depend on the project's settings."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.query_utils import DeferredAttribute
from django.utils import timezone

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler


class InstantField(models.DateTimeField):  # type: ignore[type-arg]
    """Hold an aware UTC ``datetime``, stored as UTC with and without ``USE_TZ``.

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

    def from_db_value(
        self, value: Any, expression: Any, connection: BaseDatabaseWrapper
    ) -> datetime | None:
        """Read what the database stored as UTC."""
        if value is None or value.tzinfo is UTC:
            return value  # type: ignore[no-any-return]
        if connection.vendor == "postgresql" and value.tzinfo is not None:
            return value.astimezone(UTC)  # type: ignore[no-any-return]
        return value.replace(tzinfo=UTC)  # type: ignore[no-any-return]

    def select_format(self, compiler: SQLCompiler, sql: str, params: Any) -> tuple[str, Any]:
        """Ask PostgreSQL for UTC where Django would read local times."""
        # Without USE_TZ Django reads PostgreSQL's instants as naive local times.
        # What is asked for inside of a question is not read: done twice it would be undone.
        is_read = compiler.connection.vendor == "postgresql" and not compiler.query.subquery
        if is_read and timezone_is_dropped(compiler.connection):
            return f"({sql}) AT TIME ZONE 'UTC'", params
        return sql, params


class _ReadWhenAsked(DeferredAttribute):
    """Understand a text of data when it is asked for, once."""

    field: DataField

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        values = {} if instance is None else vars(instance)
        if self.field.unread in values:
            text = values[self.field.unread]
            values[self.field.attname] = text and json.loads(text, cls=self.field.decoder)
            del values[self.field.unread]
        return super().__get__(instance, cls)

    def __set__(self, instance: Any, value: Any) -> None:
        # What was there is not asked for any more, nor to be written again.
        vars(instance).pop(self.field.unread, None)
        vars(instance)[self.field.attname] = value


class DataField(models.JSONField):
    """Hold data that rows may carry as text until somebody asks for it.

    Few who read many rows need it, and understanding it takes longer than the rest of a row.
    """

    descriptor_class = _ReadWhenAsked

    @property
    def unread(self) -> str:
        """Give the name under which an instance keeps the text."""
        return f"_{self.attname}_unread"

    def deconstruct(self) -> Any:
        """Give a plain field to migrations: to the database it is one."""
        name, _, given, named = super().deconstruct()
        return name, "django.db.models.JSONField", given, named


class NameField(models.CharField):  # type: ignore[type-arg]
    """Hold a task name that is compared letter for letter on every database."""

    _collations = {"mysql": "utf8mb4_0900_bin", "mariadb": "utf8mb4_nopad_bin"}

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        """Add the collation that tells letters apart."""
        parameters = super().db_parameters(connection)
        if connection.vendor == "mysql":
            flavour = "mariadb" if getattr(connection, "mysql_is_mariadb", False) else "mysql"
            parameters["collation"] = self._collations[flavour]
        return parameters


def as_utc(value: datetime) -> datetime:
    """Express an instant in UTC; a naive value is read in the project's zone.

    Args:
        value: aware, or naive in ``settings.TIME_ZONE``.
    """
    if timezone.is_naive(value):
        value = timezone.make_aware(value, timezone.get_default_timezone())
    return value.astimezone(UTC)


def timezone_is_dropped(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether the connection hands out naive datetimes (``USE_TZ`` is off)."""
    return connection.timezone is None
