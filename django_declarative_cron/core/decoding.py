"""Stored and imported data read field by field; each damage has an error of its own.

Source: 001 Task State Management Errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from ..cron import parse
from ..exceptions import (
    InvalidCronExpressionError,
    TaskInvalidStructureError,
    TaskInvalidTypeError,
    TaskInvalidValueError,
    TaskMissingFieldError,
    TaskTryDeserializeError,
)

_T = TypeVar("_T")

UNREADABLE = "unreadable: "
"""Begins what stands for the digest of a row whose columns could not be read."""

_MILLISECOND = timedelta(milliseconds=1)
_DELAY = "non-negative integer of milliseconds"
_INSTANT = "string in ISO 8601"


class Stored:
    """One object of plain data whose fields are asked for by name and type.

    Args:
        value: what was stored.

    Raises:
        TaskInvalidStructureError: it is no object.
    """

    def __init__(self, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise TaskInvalidStructureError(value, kind(value))
        self._fields = value

    def require(self, *fields: str) -> None:
        """Refuse an object that lacks a field.

        Raises:
            TaskMissingFieldError: of the first one it lacks.
        """
        for field in fields:
            if field not in self._fields:
                raise TaskMissingFieldError(field)

    def text(self, field: str) -> str:
        """Return a field that is a text and not empty."""
        value = self._fields[field]
        if not isinstance(value, str):
            raise TaskInvalidTypeError(field, value, "string", kind(value))
        if not value:
            raise TaskInvalidValueError(field, value, "must not be empty")
        return value

    def text_or_none(self, field: str) -> str | None:
        """Return a field that is a text, ``None`` where the object does not have it."""
        return self._optional(field, self.text)

    def delay(self, field: str) -> timedelta:
        """Return a field that is a whole number of milliseconds, not below zero."""
        value = self._fields[field]
        if not _is_whole(value) or value < 0:
            raise TaskInvalidTypeError(field, value, _DELAY, _kind_of_number(value))
        try:
            return timedelta(milliseconds=int(value))
        except OverflowError:
            raise TaskInvalidValueError(field, value, "is beyond every calendar") from None

    def instant(self, field: str) -> datetime | None:
        """Return a field that is an aware instant, ``None`` where the object does not have it."""
        return self._optional(field, self._instant)

    def count(self, field: str) -> int:
        """Return a field that is a whole number, 0 where the object does not have it."""
        value = self._fields.get(field)
        if value is None:
            return 0
        if not _is_whole(value) or value < 0:
            raise TaskInvalidTypeError(field, value, "non-negative integer", _kind_of_number(value))
        return int(value)

    def flag(self, field: str) -> bool:
        """Return a field that is true or false, ``False`` where the object does not have it."""
        value = self._fields.get(field)
        if value is not None and not isinstance(value, bool):
            raise TaskInvalidTypeError(field, value, "boolean", kind(value))
        return bool(value)

    def _optional(self, field: str, read: Callable[[str], _T]) -> _T | None:
        return None if self._fields.get(field) is None else read(field)

    def _instant(self, field: str) -> datetime:
        value = self._fields[field]
        if not isinstance(value, str | datetime):
            raise TaskInvalidTypeError(field, value, _INSTANT, kind(value))
        try:
            instant = datetime.fromisoformat(value) if isinstance(value, str) else value
            if instant.tzinfo is None:
                raise TaskInvalidValueError(field, value, "names no offset from UTC; append Z")
            return instant.astimezone(UTC)
        except (ValueError, OverflowError):
            raise TaskInvalidValueError(field, value, "is no instant in ISO 8601") from None


def plain_instant(instant: datetime | None) -> str | None:
    """Return an instant as ISO 8601 text in UTC, with as many digits as it needs."""
    if instant is None:
        return None
    precise = "microseconds" if instant.microsecond % 1000 else "milliseconds"
    return instant.astimezone(UTC).isoformat(timespec=precise).replace("+00:00", "Z")


def check_cron(text: str, dialect: str = "posix") -> None:
    """Refuse a stored cron expression that cannot be read.

    Raises:
        TaskInvalidValueError: with the field and the reason of the refusal.
    """
    try:
        parse(text, dialect)
    except InvalidCronExpressionError as error:
        reason = f"{error.details['field']} field {error.details['reason']}"
        raise TaskInvalidValueError("cronExpression", text, reason) from error
    except ValueError as error:
        raise TaskInvalidValueError("dialect", dialect, "is unknown") from error


def lost(digest: Any) -> TaskTryDeserializeError | None:
    """Say which columns of a row could not be read and were given up, or ``None``."""
    if not isinstance(digest, str):
        return TaskInvalidValueError("digest", None, "could not be read")
    if not digest.startswith(UNREADABLE):
        return None
    return TaskInvalidValueError(digest.removeprefix(UNREADABLE), None, "could not be read")


def flaw(
    cron: Any, timezone: Any, retry_delay: Any, declaration: Any
) -> TaskTryDeserializeError | None:
    """Return what keeps a stored schedule from being read, or ``None``."""
    try:
        if not isinstance(declaration, Mapping):
            raise TaskInvalidTypeError("declaration", declaration, "object", kind(declaration))
        check_cron(cron, declaration.get("dialect", "posix"))
        _check_zone(timezone)
        if retry_delay is not None and retry_delay < timedelta(0):
            value = retry_delay / _MILLISECOND
            raise TaskInvalidTypeError("retryDelayMs", value, _DELAY, _kind_of_number(value))
    except TaskTryDeserializeError as error:
        return error
    return None


def _check_zone(name: Any) -> None:
    try:
        ZoneInfo(name)
    except (LookupError, OSError, TypeError, ValueError) as error:
        raise TaskInvalidValueError("timezone", name, "is no known time zone") from error


def kind(value: Any) -> str:
    """Name the type of a value as JSON does, and of any other by its class."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case Mapping():
            return "object"
    return type(value).__name__


def _kind_of_number(value: Any) -> str:
    """Name what is wrong with a number where its type alone does not tell."""
    if kind(value) != "number":
        return kind(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity"
    if value < 0:
        return "negative number"
    return "number" if _is_whole(value) else "fractional number"


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or value.is_integer()
