"""Read a dict entry: its keys, their types and values (002 CronJob Structure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from ...cron import CronExpression, UnknownZoneError, validate_zone
from ...exceptions import echoed
from ..monitor import Monitor, read_monitor
from ..retry import POLICY_KEYS
from ..schedule import Schedule
from .declaration import Declaration, Operating, Target, offset_of
from .fields import (
    delay_hint,
    flaw_of_name,
    read_cron,
    refuse_duplicate,
    refuse_name,
    resolve_callback,
    resolve_command,
)
from .item import Declared, Item
from .keys import DEFAULTS, KEYS, MANAGED, REQUIRED, WHAT_RUNS, Key
from .options import JOB_OPTIONS, read_job, read_operating, read_retry
from .problems import Check
from .runners import read_runner
from .values import (
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    MOST_WORDS,
    did_you_mean,
    flaw_of_data,
    flaw_of_text,
    in_short,
    listed,
    name_of_key,
    nearest,
    plain_text,
    present_name,
    too_large,
    too_long,
    too_many,
)


def refuse_unknown_keys(item: Item, known: tuple[str, ...]) -> None:
    """Report unknown keys, and those that only the scheduler sets."""
    managed = [key for key in item.given if key in MANAGED]
    if managed:
        is_one = len(managed) == 1
        message = f"{listed(managed)} {'is' if is_one else 'are'} set by the scheduler and ignored."
        item.warn(Check.MANAGED_KEY, message, f"Leave the key{'' if is_one else 's'} out.")
    for key in item.given:
        if key not in known and key not in MANAGED:
            _refuse_unknown_key(item, name_of_key(key), item.given[key], known)


_NESTED: Final[Mapping[str, tuple[str, ...]]] = {
    **{key: ("options", "retry", key) for key in POLICY_KEYS},
    **{key: ("options", key) for key in ("retry", *JOB_OPTIONS)},
}
"""The paths of the keys inside of ``options``."""


def _refuse_unknown_key(item: Item, name: str, value: Any, known: tuple[str, ...]) -> None:
    near = present_name(name, known) or (name if name in _NESTED else None)
    near = near or nearest(name, [*known, *_NESTED])
    reason, hint = "is not a known key", f"Known keys: {listed(known)}."
    if near is not None:
        path = (near,) if near in known else _NESTED[near]
        reason = f"{reason}; did you mean `{'.'.join(path)}`?"
        hint = _written(path, value if near == name else None)
    hint = _celery_hint(name, value) or hint
    item.refuse_field(Check.UNKNOWN_KEY, name, value, reason, hint)


def _written(path: tuple[str, ...], value: Any) -> str:
    """Return how to write a key, with the dicts that it belongs in."""
    *outer, key = path
    if not outer:
        return f'Write "{key}".'
    shown = in_short(value) if isinstance(value, int | float | str) else "…"
    written = f'{{"{key}": {shown}}}'
    for each in reversed(outer[1:]):
        written = f'{{"{each}": {written}}}'
    return f'Write "{outer[0]}": {written}.'


def _celery_hint(key: str, value: Any) -> str:
    """Return the fix for a key or a value of Celery's beat schedule, or an empty text."""
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


def well_typed(item: Item) -> dict[str, Any]:
    """Return the keys with values of the right type; report the others and missing keys."""
    for key in REQUIRED:
        if key not in item.given:
            item.refuse_field(Check.KEY_VALUE, key, None, "is missing", f'Write "{key}": "…".')
    typed: dict[str, Any] = {}
    for key, kind in KEYS.items():
        if key not in item.given:
            continue
        value = item.given[key]
        if not isinstance(value, kind.types):
            _refuse_type(item, key, value, kind)
        elif key == "options":
            typed[key] = _with_seconds(value)
        else:
            typed[key] = plain_text(value) if isinstance(value, str) else value
    return typed


def _with_seconds(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the ``timeout`` as a number, because options are kept as JSON."""
    timeout = options.get("timeout")
    if not isinstance(timeout, timedelta):
        return dict(options)
    return {**options, "timeout": timeout.total_seconds()}


def _refuse_type(item: Item, key: str, value: Any, kind: Key) -> None:
    reason = f"must be {kind.words}, not {type(value).__name__}"
    check = Check.RETRY_DELAY if key == "retry_delay" else Check.KEY_VALUE
    hint = f"Write {delay_hint(value)}." if key == "retry_delay" else f"Write {kind.words}."
    hint = _celery_hint(key, value) or hint
    item.refuse_field(check, key, value, reason, hint)


def judge_choice(item: Item, key: str, value: Any) -> bool:
    """Return whether a value is one of the choices of its key, if it has any; else report it."""
    choices = KEYS[key].choices
    if not choices or value in choices:
        return True
    hint = f"Write {listed(choices, ' or ')}."
    reason = f"must be {listed(choices, ' or ')}{did_you_mean(value, choices)}"
    item.refuse_field(Check.KEY_VALUE, key, value, reason, hint)
    return False


def judge_the_rest(item: Item, typed: Mapping[str, Any]) -> None:
    """Report choices, data and texts that are refused."""
    for key, value in typed.items():
        if key != "dialect":
            judge_choice(item, key, value)
    if "command" in typed and "args" in typed:
        reason = "cannot be combined with `command`"
        hint = "Write the arguments as words of `command`."
        item.refuse_field(Check.KEY_VALUE, "args", typed["args"], reason, hint)
    args, options = list(typed.get("args", ())), typed.get("options", {})
    description = typed.get("description") or ""
    _refuse_flaw(item, "args", typed, flaw_of_data(args))
    _refuse_flaw(item, "description", typed, flaw_of_text(description))
    _refuse_length(item, "args", args, too_large(args))
    _refuse_length(item, "options", options, too_large(options))
    _refuse_length(item, "description", description, too_long(description, LONGEST_DESCRIPTION))


def _refuse_length(item: Item, key: str, value: Any, flaw: str | None) -> None:
    if flaw is not None:
        item.refuse_field(Check.TOO_LONG, key, value, flaw)


def _refuse_flaw(item: Item, key: str, typed: Mapping[str, Any], flaw: str | None) -> None:
    if flaw is not None:
        hint = "Use None, True, False, numbers, texts, lists, and dicts whose keys are texts."
        item.refuse_field(Check.KEY_VALUE, key, typed[key], flaw, hint)


_NAME = re.compile(r"[a-z0-9][a-z0-9\-.]*")


def read_entry(item: Item) -> Declared | None:
    """Read a dict entry; mistakes are reported to the item.

    Order: known keys, types, name, callable, duplicate, cron, zone, retry, the rest.
    """
    name = item.given.get("name")
    flaw = _flaw_of_name(name) if isinstance(name, str) else None
    if isinstance(name, str) and flaw is None:
        # Set first, so that messages about earlier keys name the task too.
        item.name = plain_text(name)
    refuse_unknown_keys(item, item.allowed(KEYS))
    typed = well_typed(item)
    if flaw is not None:
        refuse_name(item, name, flaw, _hint_for(name))
    values = {**DEFAULTS, **typed}
    target = _what_runs(item, values)
    refuse_duplicate(item)
    expression = _expression(item, values)
    zone = _zone(item, values["timezone"])
    retry = read_retry(item, typed)
    judge_the_rest(item, typed)
    options = _options(item, typed)
    job = read_job(item, options)
    runner = read_runner(item, typed, target, job.get("timeout"))
    monitor = _monitor(item, typed)
    operating = read_operating(item, typed)
    if not item.is_sound or expression is None or zone is None or target is None:
        return None
    schedule = _schedule(item, values, expression, zone, operating)
    chosen: dict[str, Any] = {"runner": runner, "operating": operating, "monitor": monitor}
    written = _as_written(values, job, options)
    declaration = Declaration(typed["name"], schedule, target, retry, **chosen, **written)
    return item.read(declaration, zone_is_said="timezone" in typed)


def _options(item: Item, typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the tags, which an entry has in ``options`` or as its own key."""
    options, tags = dict(typed.get("options", {})), typed.get("tags")
    if tags is None:
        return options
    if "tags" in options and options["tags"] not in (list(tags), tuple(tags)):
        reason = "differs from `options.tags`"
        item.refuse_field(Check.KEY_VALUE, "tags", tags, reason, "Write the tags in one place.")
    return {**options, "tags": list(tags)}


def _schedule(
    item: Item,
    values: Mapping[str, Any],
    expression: CronExpression,
    zone: ZoneInfo,
    operating: Operating,
) -> Schedule:
    calendars, excluded = item.reader.calendars, operating.exclude_calendars
    return Schedule(
        expression,
        zone,
        gap=values["gap"],
        fold=values["fold"],
        offset=offset_of(values["name"], operating.spread),
        exclusion=calendars.exclusion(excluded) if excluded else None,
    )


def _as_written(
    values: Mapping[str, Any], job: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a declaration that need no further reading."""
    known = {**values, **job, "description": values["description"] or "", "options": options}
    names = ("enabled", "overlap_policy", "atomic", "timeout", "queue", "tags", "meta")
    return {name: known[name] for name in (*names, "description", "options") if name in known}


def _flaw_of_name(name: str) -> str | None:
    if (flaw := flaw_of_name(name)) is not None or _NAME.fullmatch(name):
        return flaw
    characters = "lower-case letters, digits, `-` and `.`, the first a letter or digit"
    return f"of a dict entry must be made of {characters}, found {echoed(name)!r}"


def _hint_for(name: str) -> str:
    made = re.sub(r"[^a-z0-9.-]+", "-", name.lower())[:40].strip("-.")
    return f'Write a name such as "{made or "daily-report"}".'


def _what_runs(item: Item, values: Mapping[str, Any]) -> Target | None:
    choices = item.allowed(WHAT_RUNS)
    said = [key for key in choices if key in item.given]
    if len(said) != 1:
        field = said[1] if said else choices[0]
        one = f"exactly one of {listed(choices)}" if len(choices) > 1 else "it"
        reason = f"cannot be combined with `{said[0]}`" if said else "is missing"
        reason = f"{reason}: {one} says what runs"
        hint = 'Write "callback": "app.module.function" or "command": ["name", "argument"].'
        item.refuse_field(Check.WHAT_RUNS, field, item.given.get(field), reason, hint)
        return None
    (key,) = said
    if key not in values:
        return None
    if key == "command":
        words = _words(item, values["command"])
        return None if words is None else resolve_command(item, words)
    target = resolve_callback(item, values[key], key)
    args = tuple(values["args"])
    return replace(target, args=args) if target is not None and args else target


def _words(item: Item, command: Any) -> tuple[str, ...] | None:
    words = (command,) if isinstance(command, str) else tuple(command)
    if (flaw := too_many(words, MOST_WORDS)) is not None:
        item.refuse_field(Check.TOO_LONG, "command", command, flaw)
        return None
    flaw, hint = _flaw_of_words(command, words)
    if flaw is None:
        return tuple(map(plain_text, words))
    item.refuse_field(Check.COMMAND, "command", command, flaw, hint)
    return None


def _flaw_of_words(command: Any, words: tuple[Any, ...]) -> tuple[str | None, str]:
    hint = 'Write a list of words, such as ["clearsessions", "--verbosity", "0"].'
    if not all(isinstance(word, str) for word in words):
        return "must be a list of texts", hint
    if not words or not words[0]:
        return "must not be empty", hint
    if isinstance(command, str) and len(command.split()) > 1:
        written = echoed(str(command.split()))
        return "must be a list when it has several words", f"Write {written}."
    return next((flaw for word in words if (flaw := flaw_of_text(word))), None), hint


def _monitor(item: Item, typed: Mapping[str, Any]) -> Monitor | None:
    if "monitor" not in typed:
        return None
    try:
        return read_monitor(typed["monitor"])
    except ValueError as error:
        # The value is not shown, because it may contain a secret address.
        hint = 'Write True, an address, or {"slug": "…", "margin": 300}.'
        item.refuse_field(Check.KEY_VALUE, "monitor", "…", str(error), hint)
        return None


def _expression(item: Item, values: Mapping[str, Any]) -> CronExpression | None:
    if not judge_choice(item, "dialect", values["dialect"]) or "cron" not in values:
        return None
    return read_cron(item, values["cron"], values["dialect"])


def _zone(item: Item, name: str) -> ZoneInfo | None:
    if (reason := too_long(name, LONGEST_NAME)) is not None:
        item.refuse_field(Check.TOO_LONG, "timezone", name, reason)
        return None
    try:
        return validate_zone(name)
    except UnknownZoneError as error:
        near = f"; did you mean `{error.suggestion}`?" if error.suggestion else ""
        reason = f"{echoed(name)!r} {error.reason}{near}"
        hint = "Write a name such as `Europe/Berlin`, or `UTC`."
        item.refuse_field(Check.ZONE, "timezone", name, reason, hint)
        return None
