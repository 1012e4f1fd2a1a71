"""The keys of a dict entry, and what each may hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple

from ..exceptions import echoed
from .limits import LONGEST_DESCRIPTION, too_large, too_long
from .nearest import listed, nearest
from .overlap import POLICIES
from .parts import delay_hint, plain_text
from .plain import flaw_of_data, flaw_of_text, name_of_key
from .problem import Check
from .reading import Item


class Kind(NamedTuple):
    """Say which types a key takes, and what people call them."""

    types: tuple[Any, ...]
    words: str


_TEXT: Final = Kind((str,), "a text")
_FLAG: Final = Kind((bool,), "True or False")
_LIST: Final = Kind((list, tuple), "a list")
_DICT: Final = Kind((dict,), "a dict")
_DURATION: Final = Kind((timedelta, int, float, str), "a timedelta or a number of seconds")

KINDS: Final[Mapping[str, Kind]] = {
    "name": _TEXT,
    "cron": _TEXT,
    "timezone": _TEXT,
    "callback": Kind((str, Callable), "a dotted path or a callable"),
    "type": Kind((str,), "a dotted path"),
    "command": Kind((str, list, tuple), "a list of words"),
    "args": _LIST,
    "enabled": _FLAG,
    "description": Kind((str, type(None)), "a text"),
    "overlap_policy": _TEXT,
    "retry_delay": Kind((timedelta,), "a timedelta"),
    "dialect": _TEXT,
    "gap": _TEXT,
    "fold": _TEXT,
    "options": _DICT,
    "runner": _TEXT,
    "atomic": _FLAG,
    "monitor": Kind((bool, str, dict), "True, False, a URL or a dict"),
    "spread": _DURATION,
    "catch_up": Kind((*_DURATION.types, type(None)), f"None, or {_DURATION.words}"),
    "exclude": Kind((str, list, tuple), "the name of a calendar, or a list of such"),
    "pause_after_failures": Kind((int, type(None)), "a whole number"),
}
REQUIRED: Final = ("name", "cron")
WHAT_RUNS: Final = ("callback", "type", "command")
MANAGED: Final = ("last_run_at", "next_run_at", "run_count", "created_at")
"""Keys that 002 leaves to the scheduler and lets nobody else set."""

DIALECT: Final = ("posix", "ojs")
CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "gap": ("skip", "shift"),
    "fold": ("first", "both"),
    "overlap_policy": POLICIES,
    "runner": ("thread", "process", "django_tasks"),
}


def refuse_unknown_keys(item: Item, known: tuple[str, ...]) -> None:
    """Report every key that means nothing, and those that only the scheduler sets."""
    managed = [key for key in item.given if key in MANAGED]
    if managed:
        verb, keys = ("is", "the key") if len(managed) == 1 else ("are", "the keys")
        message = f"{listed(managed)} {verb} kept by the scheduler; what stands here is ignored."
        item.warn(Check.MANAGED_KEY, message, f"Leave {keys} out.")
    for key in item.given:
        if key not in known and key not in MANAGED:
            name, hint = name_of_key(key), f"Known keys: {listed(known)}."
            hint = _celery_hint(name, item.given[key]) or hint
            item.refuse_field(Check.UNKNOWN_KEY, name, item.given[key], _unknown(name, known), hint)


def _celery_hint(key: str, value: Any) -> str:
    """Return what to write instead of a key or a value of Celery's beat schedule."""
    if key == "task":
        return 'Write "callback": "app.module.function".'
    if key not in ("cron", "schedule"):
        return ""
    if isinstance(value, timedelta):
        return f'Write "cron": "@every {value // timedelta(seconds=1)}s".'
    names = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    fields = [str(getattr(value, f"_orig_{name}", "")) for name in names]
    if all(fields):
        return f'Write "cron": "{echoed(" ".join(fields))}".'
    return 'Write "cron": "0 7 * * *".' if key == "schedule" else ""


def _unknown(key: str, known: tuple[str, ...]) -> str:
    near = nearest(key, known)
    return f"is no known key; did you mean `{near}`?" if near else "is no known key"


def well_typed(item: Item) -> dict[str, Any]:
    """Give the keys whose values have the right type; report the others and those missing."""
    for key in REQUIRED:
        if key not in item.given:
            item.refuse_field(Check.KEY_VALUE, key, None, "is missing", f'Write "{key}": "…".')
    typed = {}
    for key, kind in KINDS.items():
        if key not in item.given:
            continue
        value = item.given[key]
        if isinstance(value, kind.types):
            typed[key] = plain_text(value) if isinstance(value, str) else value
            if key == "options":
                typed[key] = _with_seconds(value)
        else:
            _refuse_type(item, key, value, kind)
    return typed


def _with_seconds(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the ``timeout`` as a number, because options are kept as JSON."""
    timeout = options.get("timeout")
    if not isinstance(timeout, timedelta):
        return dict(options)
    return {**options, "timeout": timeout.total_seconds()}


def _refuse_type(item: Item, key: str, value: Any, kind: Kind) -> None:
    reason = f"must be {kind.words}, not {type(value).__name__}"
    check = Check.RETRY_DELAY if key == "retry_delay" else Check.KEY_VALUE
    hint = f"Write {delay_hint(value)}." if key == "retry_delay" else f"Write {kind.words}."
    hint = _celery_hint(key, value) or hint
    item.refuse_field(check, key, value, reason, hint)


def judge_choice(item: Item, key: str, value: str, choices: tuple[str, ...]) -> bool:
    """Report a value that is none of those that its key takes."""
    if value in choices:
        return True
    hint = f"Write {listed(choices, ' or ')}."
    near = nearest(value, choices)
    tail = f"; did you mean `{near}`?" if near else ""
    reason = f"must be {listed(choices, ' or ')}{tail}"
    item.refuse_field(Check.KEY_VALUE, key, value, reason, hint)
    return False


def judge_the_rest(item: Item, typed: Mapping[str, Any]) -> None:
    """Judge what comes last: choices, data and texts."""
    for key, choices in CHOICES.items():
        if key in typed:
            judge_choice(item, key, typed[key], choices)
    if "command" in typed and "args" in typed:
        reason = "does not go with `command`"
        hint = "Write the arguments as words of `command`."
        item.refuse_field(Check.KEY_VALUE, "args", typed["args"], reason, hint)
    args, description = list(typed.get("args", ())), typed.get("description") or ""
    _refuse_flaw(item, "args", typed, flaw_of_data(args))
    _refuse_flaw(item, "description", typed, flaw_of_text(description))
    _refuse_length(item, "args", args, too_large(args))
    _refuse_length(item, "options", typed.get("options"), too_large(typed.get("options", {})))
    _refuse_length(item, "description", description, too_long(description, LONGEST_DESCRIPTION))


def _refuse_length(item: Item, key: str, value: Any, flaw: str | None) -> None:
    if flaw is not None:
        item.refuse_field(Check.TOO_LONG, key, value, flaw)


def _refuse_flaw(item: Item, key: str, typed: Mapping[str, Any], flaw: str | None) -> None:
    if flaw is not None:
        hint = "Use None, True, False, numbers, texts, lists, and dicts whose keys are texts."
        item.refuse_field(Check.KEY_VALUE, key, typed[key], flaw, hint)
