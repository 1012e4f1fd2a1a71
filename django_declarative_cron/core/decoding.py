"""Read stored and imported data; each kind of damage has an error of its own.

Source: 001 Task State Management Errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast, get_args
from zoneinfo import ZoneInfo

from ..cron import CronExpression, Fold, Gap, parse
from ..exceptions import (
    InvalidCronExpressionError,
    TaskInvalidStructureError,
    TaskInvalidTypeError,
    TaskInvalidValueError,
    TaskMissingFieldError,
)
from .declarations.declaration import Operating, offset_of
from .overlap import POLICIES, POLICY_OF_SHORT_FORM, Policy
from .retry import FixedDelay, Retry, read_policy
from .schedule import Calendars, Schedule

_T = TypeVar("_T")

_MILLISECOND = timedelta(milliseconds=1)
_DELAY = "non-negative integer of milliseconds"
_INSTANT = "string in ISO 8601"


class Stored:
    """One object of plain data, with access to its fields by name and type.

    Args:
        value: the stored value.

    Raises:
        TaskInvalidStructureError: it is not an object.
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
            raise TaskInvalidValueError(field, value, "is not an instant in ISO 8601") from None


def plain_instant(instant: datetime | None) -> str | None:
    """Return an instant as ISO 8601 text in UTC, with as many digits as it needs."""
    if instant is None:
        return None
    precise = "microseconds" if instant.microsecond % 1000 else "milliseconds"
    return instant.astimezone(UTC).isoformat(timespec=precise).replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class StoredTerms:
    """The schedule and options of a task, as stored in its row."""

    schedule: Schedule
    retry: Retry
    overlap_policy: Policy
    operating: Operating


def decode_terms(
    name: str,
    cron: str,
    timezone: str,
    retry_delay: timedelta | None,
    declaration: Any,
    calendars: Calendars,
) -> StoredTerms:
    """Read when and how a task runs from the columns of its row.

    Raises:
        TaskTryDeserializeError: a column has a value that means nothing.
    """
    schedule = decode_schedule(name, cron, timezone, declaration, calendars)
    if retry_delay is not None and retry_delay < timedelta(0):
        value = retry_delay / _MILLISECOND
        raise TaskInvalidTypeError("retryDelayMs", value, _DELAY, _kind_of_number(value))
    policy = declaration.get("overlap_policy", POLICY_OF_SHORT_FORM)
    if policy not in POLICIES:
        raise TaskInvalidValueError("overlap_policy", policy, "is unknown")
    policy = cast(Policy, policy)
    retry = _retry(declaration) if retry_delay is None else FixedDelay(retry_delay)
    return StoredTerms(schedule, retry, policy, _operating(declaration))


def decode_schedule(
    name: str, cron: str, timezone: str, declaration: Any, calendars: Calendars
) -> Schedule:
    """Read the schedule of a task from the columns of its row.

    Raises:
        TaskTryDeserializeError: a column has a value that means nothing.
    """
    if not isinstance(declaration, Mapping):
        raise TaskInvalidTypeError("declaration", declaration, "object", kind(declaration))
    expression = decode_cron(cron, declaration.get("dialect", "posix"))
    zone, operating = _zone(timezone), _operating(declaration)
    gap, fold = declaration.get("gap", "skip"), declaration.get("fold", "first")
    for field, value, known in (("gap", gap, get_args(Gap)), ("fold", fold, get_args(Fold))):
        if value not in known:
            raise TaskInvalidValueError(field, value, "is unknown")
    exclude = operating.exclude_calendars
    exclusion = calendars.exclusion(exclude) if exclude else None
    offset = offset_of(name, operating.spread)
    return Schedule(expression, zone, gap, fold, offset=offset, exclusion=exclusion)


def decode_cron(text: str, dialect: str = "posix") -> CronExpression:
    """Read a stored cron expression.

    Raises:
        TaskInvalidValueError: with the field and the reason of the refusal.
    """
    try:
        return parse(text, dialect)
    except InvalidCronExpressionError as error:
        reason = f"{error.details['field']} field {error.details['reason']}"
        raise TaskInvalidValueError("cronExpression", text, reason) from error
    except (ValueError, TypeError) as error:
        raise TaskInvalidValueError("dialect", dialect, "is unknown") from error


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (LookupError, OSError, TypeError, ValueError) as error:
        raise TaskInvalidValueError("timezone", name, "is not a known time zone") from error


def _retry(declaration: Mapping[str, Any]) -> Retry:
    given = declaration.get("retry") or {}
    if not isinstance(given, Mapping):
        raise TaskInvalidTypeError("retry", given, "object", kind(given))
    policy, _ = read_policy(given)
    return policy


def _operating(declaration: Mapping[str, Any]) -> Operating:
    try:
        return Operating.of_data(declaration)
    except (ValueError, TypeError, OverflowError) as error:
        raise TaskInvalidValueError("declaration", None, str(error)) from error


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
    """Return the kind of an invalid number if its type alone does not show it."""
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
