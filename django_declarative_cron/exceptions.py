"""The error taxonomy: one class per error the specifications name.

Names, message texts and the keys of ``details`` are a contract others build
on; they carry over from the specifications exactly, camel case included.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

LONGEST_TEXT = 16_000
"""Characters that are read of the text of an exception."""

CUT = " … "
"""Replaces the middle of a long text."""

_UNREADABLE = "(its text cannot be read)"
_LONGEST_NAME = 200

LONGEST_ECHO = 200
"""The most characters of a refused value that an error message repeats."""

_LONGEST_CAUSE = 500
_NAMES_SHOWN = 5
_LOGIN = re.compile(r"://[^\s/@]+@")
_SECRET = re.compile(
    r"""(?ix) \b ([\w-]* (?:pass(?:word|wd|phrase)? | pwd | secret | token | api[_-]?key) [\w-]*)
    (["']? \s* [=:] \s*) ("[^"]*" | '[^']*' | [^\s,;&]+)"""
)


def words_of(cause: BaseException) -> str:
    """Return the text of a cause for a message: one line, without logins and secrets.

    The cause itself is for ``details``; a message may be shown to anybody
    (001 Error Throwing Guarantees).
    """
    text = text_of(cause, whole_words=True)
    lines = [] if text == _UNREADABLE else text.split("\n")
    text = next((line.strip() for line in lines if line.strip()), class_of(cause))
    text = safe(without_secrets(text))
    return text if len(text) <= _LONGEST_CAUSE else text[:_LONGEST_CAUSE] + "…"


def safe(text: str, keep: str = "") -> str:
    """Return a text with its control characters and text directions escaped.

    They could forge a log line, or change how a terminal shows everything after them
    (003 Input Validation).
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text
    )


def echoed(text: str) -> str:
    """Return the beginning of a text that may be of any length."""
    return text if len(text) <= LONGEST_ECHO else f"{text[:LONGEST_ECHO]}…"


class _Short(reprlib.Repr):
    """Represent values without building more text than is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxtuple = self.maxlist = self.maxdict = self.maxset = self.maxfrozenset = 20
        self.maxstring = self.maxother = self.maxlong = 500

    repr_bytes = repr_bytearray = reprlib.Repr.repr_str

    # The library sorts all of them before it cuts.
    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        return super().repr_dict(dict(islice(x.items(), self.maxdict + 1)), level)

    def repr_set(self, x: set[Any], level: int) -> str:
        return super().repr_set(set(islice(x, self.maxset + 1)), level)

    def repr_frozenset(self, x: frozenset[Any], level: int) -> str:
        return super().repr_frozenset(frozenset(islice(x, self.maxfrozenset + 1)), level)


_short = _Short()
_BUILT_IN = (list, tuple, dict, set, frozenset, bytes, bytearray)


def class_of(error: BaseException) -> str:
    """Return the name of the class of an exception, however long it is."""
    try:
        return shortened(type(error).__name__, _LONGEST_NAME)
    except BaseException:
        return BaseException.__name__


def text_of(error: BaseException, *, whole_words: bool = False) -> str:
    """Return the text of any exception: its beginning and its end where it is long.

    An argument of tens of megabytes is cut before Python builds the text of it. With
    ``whole_words`` the end begins with a word, because the rest of a secret is not recognised.
    """
    try:
        text = _words(error)
        size, cut = str.__len__(text), str.__getitem__
        if size <= LONGEST_TEXT:
            return cut(text, slice(size))
        begin, end = cut(text, slice(LONGEST_TEXT // 2)), cut(text, slice(-LONGEST_TEXT // 2, size))
    except BaseException:
        return _UNREADABLE
    if whole_words:
        end = "".join(re.split(r"(\s)", end, maxsplit=1)[1:])
    return begin + CUT + end


def shortened(text: str, length: int) -> str:
    """Return a text without its middle where it is longer than ``length``."""
    if len(text) <= length:
        return text
    kept = length - len(CUT)
    return text[: kept // 2] + CUT + text[-(kept - kept // 2) :]


def _words(error: BaseException) -> str:
    """Return the text, worded here where Python would build the text of every argument."""
    own, args = type(error).__str__, error.args
    if own is KeyError.__str__ and len(args) == 1:
        return _short.repr(args[0])
    if own in (BaseException.__str__, KeyError.__str__) and (
        len(args) > 1 or isinstance(next(iter(args), None), _BUILT_IN)
    ):
        return _short.repr(args if len(args) > 1 else args[0])
    if own is OSError.__str__ and any(_is_long(each) for each in args):
        return _short.repr(args)
    if isinstance(error, BaseExceptionGroup) and _is_long(error.message):
        return error.message
    return str(error)


def _is_long(value: Any) -> bool:
    return isinstance(value, str | bytes) and len(value) > LONGEST_TEXT


def without_secrets(text: str) -> str:
    """Replace logins in URLs, and values after words such as ``password=``."""
    return _SECRET.sub(r"\1\2***", _LOGIN.sub("://***@", text))


class DeclarativeCronError(Exception):
    """The base of all errors, with a message for people and details for programs.

    Args:
        message: the mistake and, where it helps, its fix.
        details: the keys the specification of the error names.
    """

    def __init__(self, message: str, **details: Any) -> None:
        # Messages repeat what was given, and go to terminals and logs.
        message = safe(message)
        super().__init__(message)
        self.message = message
        self.details: Mapping[str, Any] = details

    @property
    def name(self) -> str:
        """Return the name of the error in the specifications (001 Error Taxonomy)."""
        return type(self).__name__

    def __getattr__(self, attribute: str) -> Any:
        details: Mapping[str, Any] = self.__dict__.get("details", {})
        try:
            return details[attribute]
        except KeyError:
            raise AttributeError(attribute) from None

    def __reduce__(self) -> tuple[Any, ...]:
        own = ("message", "details")
        rest = {key: value for key, value in vars(self).items() if key not in own}
        return (_rebuild, (type(self), self.message, dict(self.details)), rest)


def _rebuild(
    cls: type[DeclarativeCronError], message: str, details: dict[str, Any]
) -> DeclarativeCronError:
    error = cls.__new__(cls)
    DeclarativeCronError.__init__(error, message, **details)
    return error


class RegistrationsNotArrayError(DeclarativeCronError):
    """Raised for registrations that are not a list (001 Registration Validation Errors)."""

    def __init__(self) -> None:
        super().__init__("Registrations must be an array")


class RegistrationShapeError(DeclarativeCronError):
    """Raised for a registration of the wrong length or with parts of the wrong type."""

    def __init__(self, index: int, received: Any) -> None:
        super().__init__(
            "Invalid registration shape: expected [string, string, function, Duration]",
            registrationIndex=index,
            received=received,
        )


class InvalidRegistrationError(DeclarativeCronError):
    """Raised for a registration with the right shape and invalid content."""

    def __init__(self, field: str, value: Any, reason: str, *, task: str | None = None) -> None:
        where = f'Invalid registration "{task}"' if task else "Invalid registration"
        message = f"{where}: {echoed(field)} {reason}"
        super().__init__(message, field=field, value=value, reason=reason)


class ScheduleDuplicateTaskError(DeclarativeCronError):
    """Raised for a name that occurs twice in one list."""

    def __init__(self, task_name: str) -> None:
        super().__init__(f'Task with name "{task_name}" is already scheduled', taskName=task_name)


class _CronExpressionError(DeclarativeCronError):
    def __init__(self, expression: Any, field: str, reason: str) -> None:
        super().__init__(
            f'Invalid cron expression "{echoed(str(expression))}": {field} field {reason}',
            expression=expression,
            field=field,
            reason=reason,
        )


class InvalidCronExpressionError(_CronExpressionError):
    """Raised for a text that is not a cron expression (001 Cron Expression Parsing Errors)."""


class CronExpressionInvalidError(_CronExpressionError):
    """Raised for an invalid cron expression in a registration (001 Validation Errors)."""


class FieldParseError(DeclarativeCronError):
    """Raised for one field of a cron expression."""

    def __init__(self, message: str, field_value: str, field_name: str) -> None:
        super().__init__(message, fieldValue=field_value, fieldName=field_name)


class CronCalculationError(DeclarativeCronError):
    """Raised if the next occurrence of a valid expression cannot be calculated."""

    def __init__(self, expression: str, current_time: str, cause: BaseException) -> None:
        super().__init__(
            f"Failed to calculate next occurrence: {words_of(cause)}",
            expression=expression,
            currentTime=current_time,
            cause=cause,
        )


class CalendarError(DeclarativeCronError):
    """Raised if a calendar does not answer whether it excludes a day."""

    def __init__(self, calendar: str, reason: str) -> None:
        super().__init__(
            f"calendar {echoed(calendar)!r} {reason}", calendar=calendar, reason=reason
        )


class NegativeRetryDelayError(DeclarativeCronError):
    """Raised for a negative retry delay."""

    def __init__(self, retry_delay_ms: float) -> None:
        super().__init__("Retry delay must be non-negative", retryDelayMs=retry_delay_ms)


class ScheduleTaskError(DeclarativeCronError):
    """Raised if scheduling failed; nothing has changed."""

    def __init__(self, name: str, cron_expression: str, cause: BaseException) -> None:
        super().__init__(
            f"Failed to schedule task '{name}': {words_of(cause)}",
            name=name,
            cronExpression=cron_expression,
            cause=cause,
        )

    @property
    def name(self) -> str:
        """Return the failing task (``details`` of this error has a key of that name)."""
        return str(self.details["name"])


class StopSchedulerError(DeclarativeCronError):
    """Raised if the shutdown failed."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"Failed to stop scheduler: {words_of(cause)}", cause=cause)


class TaskTryDeserializeError(DeclarativeCronError):
    """Raised for a damaged task state; each kind of damage has its own subclass.

    Source: 001 Task State Management Errors.
    """


class TaskMissingFieldError(TaskTryDeserializeError):
    """Raised for a stored task state without a required field."""

    def __init__(self, field: str) -> None:
        super().__init__(f"Missing required field: {field}", field=field)


class TaskInvalidTypeError(TaskTryDeserializeError):
    """Raised for a stored field of the wrong type."""

    def __init__(self, field: str, value: Any, expected: str, actual: str | None = None) -> None:
        actual = actual or type(value).__name__
        super().__init__(
            f"Invalid type for field '{field}': expected {expected}, got {actual}",
            field=field,
            value=value,
            expectedType=expected,
            actualType=actual,
        )


class TaskInvalidValueError(TaskTryDeserializeError):
    """Raised for a stored field of the right type with an invalid value."""

    def __init__(self, field: str, value: Any, reason: str) -> None:
        super().__init__(
            f"Invalid value for field '{field}': {reason}",
            field=field,
            value=value,
            reason=reason,
        )


class TaskInvalidStructureError(TaskTryDeserializeError):
    """Raised for a stored task state that is not an object."""

    def __init__(self, value: Any, actual: str | None = None) -> None:
        actual = actual or type(value).__name__
        super().__init__(f"Invalid task state: expected object, got {actual}", value=value)


class TaskListMismatchError(DeclarativeCronError):
    """Raised if the stored tasks are not those the scheduler expects."""

    def __init__(self, expected: Iterable[str], actual: Iterable[str]) -> None:
        expected, actual = sorted(expected), sorted(actual)
        missing = _some(set(expected) - set(actual))
        unexpected = _some(set(actual) - set(expected))
        parts = [f"missing {missing}" if missing else "", unexpected and f"unexpected {unexpected}"]
        super().__init__(
            "Persisted tasks do not match the declared ones: " + "; ".join(filter(None, parts)),
            expected=expected,
            actual=actual,
        )


def _some(names: set[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in sorted(names)[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
