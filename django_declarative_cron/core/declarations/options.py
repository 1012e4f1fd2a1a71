"""Read the object ``options`` of a dict entry (002), and the keys for its operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from ...exceptions import echoed
from ..retry import FixedDelay, Retry, RetryPolicy, read_policy
from .declaration import DEFAULT_QUEUE
from .fields import judge_delay, plain_text
from .item import Item
from .operating import LONGEST_SPREAD, SECOND, Operating
from .problems import Check
from .values import (
    LONGEST_NAME,
    MOST_TAGS,
    flaw_of_data,
    flaw_of_text,
    in_short,
    listed,
    name_of_key,
    nearest,
    read_duration,
    seconds_of,
    too_long,
    too_many,
)

LONGEST_TIMEOUT: Final = timedelta(days=365)

LEAST_MEMORY: Final = 64 * 1024 * 1024
"""Bytes below which no process reaches the callback."""

MOST_MEMORY: Final = 2**50
"""More bytes than any machine has; systems refuse limits that they cannot represent."""

_RETRY: Final = "options.retry"
_RETRY_HINT: Final = 'Write {"max_attempts": 3, "initial_interval": "PT30S"}.'


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The keys of ``options`` other than the retry policy; the docs show these texts.

    Args:
        queue: queue for external workers and Django Tasks.
        timeout: maximum duration of a run: a ``timedelta`` or a number of seconds.
        tags: the key ``tags`` of the entry, as in Open Job Spec.
        meta: a dict for ``run.meta``; ``cron_name`` and ``cron_triggered_at`` are added.
        memory_limit: maximum memory of the process of a run, in bytes.
        cpu_limit: maximum CPU time of the process of a run, in whole seconds.
        priority: priority in the queue of Django Tasks, from -100 to 100.
        backend: alias of the Django Tasks backend in ``TASKS``.
    """

    queue: str = DEFAULT_QUEUE
    timeout: timedelta | None = None
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    memory_limit: int | None = None
    cpu_limit: int | None = None
    priority: int = 0
    backend: str | None = None


class _RefusedError(ValueError):
    """A value is refused; the message is readable after the name of its key."""


def read_retry(item: Item, typed: Mapping[str, Any]) -> Retry:
    """Return the rule that dates retries: a fixed delay, or a policy merged over its defaults."""
    options = typed.get("options", {})
    if "retry_delay" in typed:
        judge_delay(item, typed["retry_delay"], "retry_delay")
        if "retry" in options:
            reason = "stands beside `retry_delay`: only one of them dates the retries"
            hint = "Leave one out: a fixed delay without limit, or a policy."
            item.refuse_field(Check.RETRY_POLICY, _RETRY, options["retry"], reason, hint)
        return FixedDelay(typed["retry_delay"])
    given = options.get("retry", {})
    if not isinstance(given, Mapping):
        reason = f"must be a dict, not {type(given).__name__}"
        item.refuse_field(Check.RETRY_POLICY, _RETRY, given, reason, _RETRY_HINT)
        return RetryPolicy()
    policy, flaws = read_policy(given)
    for key, flaw in flaws.items():
        value = next(value for name, value in given.items() if name_of_key(name) == key)
        item.refuse_field(Check.RETRY_POLICY, f"{_RETRY}.{key}", value, flaw, _RETRY_HINT)
    if not flaws and policy.initial_interval > policy.max_interval:
        message = "`options.retry`: max_interval cuts the first interval short already"
        item.warn(Check.RETRY_CAPPED, message, "Write a longer max_interval; the default is PT5M.")
    return policy


def read_job(item: Item, options: Mapping[str, Any]) -> JobOptions:
    """Read every option except ``retry``; mistakes are reported to the item."""
    values: dict[str, Any] = {}
    for key, value in options.items():
        name = name_of_key(key)
        if name == "retry":
            continue
        if name not in _READERS:
            item.refuse_field(Check.UNKNOWN_KEY, f"options.{name}", value, _unknown(name), _HINT)
            continue
        try:
            values[name] = _READERS[name](value)
        except _RefusedError as error:
            item.refuse_field(Check.KEY_VALUE, f"options.{name}", value, str(error), _HINT)
    return JobOptions(**values)


def _unknown(key: str) -> str:
    near = nearest(key, (*_READERS, "retry"))
    return f"is no known key; did you mean `{near}`?" if near else "is no known key"


def _queue(value: Any) -> str:
    if not isinstance(value, str):
        raise _RefusedError(f"must be a text, not {type(value).__name__}")
    if not 0 < len(value) <= LONGEST_NAME:
        raise _RefusedError(f"must have 1 to {LONGEST_NAME} characters, found {len(value)}")
    _refuse_flaw(flaw_of_text(value, one_line=True))
    return plain_text(value)


def _timeout(value: Any) -> timedelta:
    seconds = seconds_of(value)
    if seconds is None:
        raise _RefusedError(
            f"must be a timedelta or a number of seconds, not {type(value).__name__}"
        )
    if not 0 < seconds <= LONGEST_TIMEOUT.total_seconds():
        most = f"{LONGEST_TIMEOUT.total_seconds():.0f}"
        raise _RefusedError(f"must be more than 0 and at most {most} seconds")
    return max(timedelta(seconds=seconds), timedelta(milliseconds=1))


def _tags(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise _RefusedError(f"must be a list, not {type(value).__name__}")
    if not all(isinstance(tag, str) for tag in value):
        raise _RefusedError("must be a list of texts")
    _refuse_flaw(too_many(value, MOST_TAGS))
    for tag in value:
        _refuse_flaw(too_long(tag, LONGEST_NAME))
    _refuse_flaw(flaw_of_data(list(value)))
    return tuple(map(plain_text, value))


def _meta(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _RefusedError(f"must be a dict, not {type(value).__name__}")
    _refuse_flaw(flaw_of_data(value))
    return dict(value)


def _memory(value: Any) -> int:
    return _whole(value, LEAST_MEMORY, MOST_MEMORY, "bytes")


def _seconds(value: Any) -> int:
    return _whole(value, 1, int(LONGEST_TIMEOUT.total_seconds()), "seconds")


def _priority(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -100 <= value <= 100:
        raise _RefusedError("must be a whole number from -100 to 100")
    return value


def _whole(value: Any, least: int, most: int, unit: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _RefusedError(f"must be a whole number of {unit}, not {type(value).__name__}")
    if not least <= value <= most:
        bounds = f"from {least} to {most} {unit}"
        raise _RefusedError(f"must be {bounds}, found {in_short(value)}")
    return value


def _refuse_flaw(flaw: str | None) -> None:
    if flaw is not None:
        raise _RefusedError(flaw)


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "queue": _queue,
    "timeout": _timeout,
    "tags": _tags,
    "meta": _meta,
    "memory_limit": _memory,
    "cpu_limit": _seconds,
    "priority": _priority,
    "backend": _queue,
}
_HINT: Final = f"Known options: {listed((*_READERS, 'retry'))}."


LONGEST_CATCH_UP: Final = timedelta(days=36500)
_MOST_FAILURES: Final = 10_000
_DURATION: Final = 'Write timedelta(minutes=30), a number of seconds, or "PT30M".'


def read_operating(item: Item, typed: Mapping[str, Any]) -> Operating:
    """Read the keys of ``Operating``; mistakes are reported to the item."""
    catch_up_window = typed.get("catch_up_window")
    return Operating(
        spread=_duration(item, "spread", typed.get("spread", 0), SECOND, LONGEST_SPREAD),
        catch_up_window=None
        if catch_up_window is None
        else _duration(item, "catch_up_window", catch_up_window, timedelta(0), LONGEST_CATCH_UP),
        exclude_calendars=_calendars(item, typed.get("exclude_calendars", ())),
        pause_after_failures=_failures(item, typed.get("pause_after_failures")),
    )


def _duration(item: Item, key: str, given: Any, least: timedelta, most: timedelta) -> timedelta:
    found, flaw = _timedelta(given)
    if found is not None and found and not least <= found <= most:
        flaw = f"must be at least {_words(least)} and at most {_words(most)}, found {found}"
    if flaw:
        item.refuse_field(Check.KEY_VALUE, key, given, flaw, _DURATION)
    return timedelta(0) if found is None else found


def _timedelta(given: Any) -> tuple[timedelta | None, str]:
    if isinstance(given, timedelta):
        return given, ""
    try:
        if isinstance(given, str):
            return read_duration(given), ""
        seconds = seconds_of(given)
        if seconds is not None:
            return timedelta(seconds=seconds), ""
    except ValueError as error:
        return None, str(error)
    except OverflowError:
        return (timedelta.max if given > 0 else timedelta.min), ""
    return None, f"must be a timedelta or a number of seconds, not {in_short(given)}"


def _words(length: timedelta) -> str:
    return f"{length.days} days" if length.days else f"{length.total_seconds():g} s"


def _calendars(item: Item, given: Any) -> tuple[str, ...]:
    names, known = (given,) if isinstance(given, str) else tuple(given), item.reader.calendars.names
    hint = f"Known calendars: {listed(known)}." if known else _NO_CALENDARS
    for name in names:
        if not isinstance(name, str):
            flaw = f"must be names of calendars, found {in_short(name)}"
            item.refuse_field(Check.KEY_VALUE, "exclude_calendars", given, flaw, hint)
        elif name not in known:
            near = nearest(name, known)
            tail = f"; did you mean `{near}`?" if near else ""
            flaw = f"{echoed(name)!r} is no calendar{tail}"
            item.refuse_field(Check.CALENDAR, "exclude_calendars", given, flaw, hint)
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


_NO_CALENDARS: Final = (
    'Name it in DECLARATIVE_CRON: {"CALENDARS": {"holidays": "app.calendars.is_holiday"}}.'
)


def _failures(item: Item, given: Any) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not 1 <= given <= _MOST_FAILURES:
        flaw = f"must be a whole number from 1 to {_MOST_FAILURES}, found {in_short(given)}"
        item.refuse_field(Check.KEY_VALUE, "pause_after_failures", given, flaw, "Write 5.")
        return None
    return int(given)
