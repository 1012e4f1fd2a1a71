"""Read the object ``options`` of a dict entry (002), and the keys for its operation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple

from ...exceptions import echoed
from ..readers import SECOND, ZERO, Reader, duration, read_each, text, whole
from ..retry import POLICY_KEYS, FixedDelay, Retry, RetryPolicy, read_policy
from .declaration import DEFAULT_QUEUE, LONGEST_SPREAD, MILLISECOND, Operating
from .fields import judge_delay
from .item import Item
from .problems import Check
from .values import (
    LONGEST_NAME,
    MOST_TAGS,
    did_you_mean,
    flaw_of_data,
    hint_for_unknown,
    in_short,
    listed,
    plain_text,
    read_duration,
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


def read_retry(item: Item, typed: Mapping[str, Any]) -> Retry:
    """Return the rule that dates retries: a fixed delay, or a policy merged over its defaults."""
    options = typed.get("options", {})
    if "retry_delay" in typed:
        judge_delay(item, typed["retry_delay"], "retry_delay")
        if "retry" in options:
            reason = "cannot be combined with `retry_delay`: set one of them"
            hint = "Leave one out: a fixed delay without limit, or a policy."
            item.refuse_field(Check.RETRY_POLICY, _RETRY, options["retry"], reason, hint)
        return FixedDelay(typed["retry_delay"])
    given = options.get("retry", {})
    if not isinstance(given, Mapping):
        reason = f"must be a dict, not {type(given).__name__}"
        item.refuse_field(Check.RETRY_POLICY, _RETRY, given, reason, _RETRY_HINT)
        return RetryPolicy()
    policy, flaws = read_policy(given)
    for flaw in flaws:
        hint = hint_for_unknown(flaw.key, POLICY_KEYS) if flaw.is_unknown else _RETRY_HINT
        key = f"{_RETRY}.{flaw.key}"
        item.refuse_field(Check.RETRY_POLICY, key, flaw.value, flaw.reason, hint)
    if not flaws and policy.initial_interval > policy.max_interval:
        message = "`options.retry`: max_interval cuts the first interval short already"
        item.warn(Check.RETRY_CAPPED, message, "Write a longer max_interval; the default is PT5M.")
    return policy


def read_job(item: Item, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return every accepted option except ``retry``; mistakes are reported to the item."""
    values, flaws = read_each(options, _READERS)
    for flaw in flaws:
        if flaw.is_unknown:
            check, hint = Check.UNKNOWN_KEY, hint_for_unknown(flaw.key, _READERS, "options")
        else:
            check, hint = Check.KEY_VALUE, _help_for(flaw.key)
        item.refuse_field(check, f"options.{flaw.key}", flaw.value, flaw.reason, hint)
    values.pop("retry", None)
    return values


def _tags(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(tag, str) for tag in value):
        raise ValueError("must be a list of texts")
    _refuse_flaw(too_many(value, MOST_TAGS))
    for tag in value:
        _refuse_flaw(too_long(tag, LONGEST_NAME))
    _refuse_flaw(flaw_of_data(list(value)))
    return tuple(map(plain_text, value))


def _meta(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"must be a dict, not {type(value).__name__}")
    _refuse_flaw(flaw_of_data(value))
    return dict(value)


def _refuse_flaw(flaw: str | None) -> None:
    if flaw is not None:
        raise ValueError(flaw)


class Option(NamedTuple):
    """A key of ``options`` other than the retry policy.

    Args:
        read: returns its value.
        default: the value of runs without the key; empty where they have none.
        help: the text in the docs, in Markdown.
    """

    read: Reader
    default: object
    help: str


JOB_OPTIONS: Final[Mapping[str, Option]] = {
    "queue": Option(text(), DEFAULT_QUEUE, "queue for external workers and Django Tasks"),
    "timeout": Option(
        duration(MILLISECOND, LONGEST_TIMEOUT),
        None,
        "maximum duration of a run: a `timedelta` or a number of seconds",
    ),
    "tags": Option(_tags, (), "the key `tags` of the entry, as in Open Job Spec"),
    "meta": Option(
        _meta,
        {},
        "a dict for `run.meta`; `cron_name` and `cron_triggered_at` are added",
    ),
    "memory_limit": Option(
        whole(LEAST_MEMORY, MOST_MEMORY, "bytes"),
        None,
        "maximum memory of the process of a run, in bytes",
    ),
    "cpu_limit": Option(
        whole(1, LONGEST_TIMEOUT // SECOND, "seconds"),
        None,
        "maximum CPU time of the process of a run, in whole seconds",
    ),
    "priority": Option(
        whole(-100, 100), 0, "priority in the queue of Django Tasks, from -100 to 100"
    ),
    "backend": Option(text(), None, "alias of the Django Tasks backend in `TASKS`"),
}
_READERS: Final[Mapping[str, Reader]] = {
    **{name: option.read for name, option in JOB_OPTIONS.items()},
    "retry": lambda value: value,  # ``read_retry`` reads it.
}


def _help_for(option: str) -> str:
    text = JOB_OPTIONS[option].help
    return f"Write {text}." if text.startswith("a ") else f"{text[0].upper()}{text[1:]}."


_MOST_FAILURES: Final = 10_000
_DURATION: Final = 'Write timedelta(minutes=30), a number of seconds, or "PT30M".'
_read_window = duration(ZERO)
_read_failures = whole(1, _MOST_FAILURES)


def read_operating(item: Item, typed: Mapping[str, Any]) -> Operating:
    """Read the keys of ``Operating``; mistakes are reported to the item."""
    return Operating(
        spread=_value(item, typed, "spread", _read_spread, _DURATION) or ZERO,
        catch_up_window=_value(item, typed, "catch_up_window", _read_window, _DURATION),
        exclude_calendars=_calendars(item, typed.get("exclude_calendars", ())),
        pause_after_failures=_value(
            item, typed, "pause_after_failures", _read_failures, "Write 5."
        ),
    )


def _value(item: Item, typed: Mapping[str, Any], key: str, read: Reader, hint: str) -> Any:
    """Return the value of a key, ``None`` if it is missing or refused."""
    given = typed.get(key)
    if given is None:
        return None
    try:
        return read(read_duration(given) if isinstance(given, str) else given)
    except ValueError as error:
        item.refuse_field(Check.KEY_VALUE, key, given, str(error), hint)
        return None


def _read_spread(value: Any) -> timedelta:
    length = duration(ZERO, LONGEST_SPREAD)(value)
    return duration(SECOND, LONGEST_SPREAD)(value) if length else ZERO


def _calendars(item: Item, given: Any) -> tuple[str, ...]:
    names, known = (given,) if isinstance(given, str) else tuple(given), item.reader.calendars.names
    hint = f"Known calendars: {listed(known)}." if known else _NO_CALENDARS
    for name in names:
        if not isinstance(name, str):
            flaw = f"must be names of calendars, found {in_short(name)}"
            item.refuse_field(Check.KEY_VALUE, "exclude_calendars", given, flaw, hint)
        elif name not in known:
            flaw = f"{echoed(name)!r} is not a known calendar{did_you_mean(name, known)}"
            near = hint_for_unknown(name, known, "calendars") if known else _NO_CALENDARS
            item.refuse_field(Check.CALENDAR, "exclude_calendars", given, flaw, near)
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


_NO_CALENDARS: Final = (
    'Name it in DECLARATIVE_CRON: {"CALENDARS": {"holidays": "app.calendars.is_holiday"}}.'
)
