"""The limits of one task's declaration, set by databases and by readability.

Settings, the HTTP binding and the importers all read declarations through ``core``, so they
share these limits.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Collection, Iterable
from datetime import timedelta
from difflib import get_close_matches
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Final

from ...exceptions import echoed

LONGEST_NAME: Final = 255
LONGEST_DESCRIPTION: Final = 2_000
LONGEST_PATH: Final = 200
"""Characters of an import path or a type."""

LONGEST_DATA: Final = 65_536
"""Characters of all arguments or options together, as JSON."""

MOST_WORDS: Final = 200
MOST_TAGS: Final = 50
MOST_PROBLEMS: Final = 20
"""The most problems that one answer or one message lists."""

MOST_WHOLE: Final = 2**31 - 1
"""The largest whole number that every database counts to."""


_AS_JSON: Final = json.JSONEncoder(ensure_ascii=False, default=str).encode


def plain_text(text: str) -> str:
    """Return a text as plain ``str``, without the additions of subclasses (enum members)."""
    return str.__str__(text)


def too_long(text: str, most: int) -> str | None:
    """Return why a text is refused for its length, or ``None``."""
    return None if len(text) <= most else f"must have at most {most} characters, found {len(text)}"


def too_many(items: Collection[Any], most: int) -> str | None:
    """Return why a list is refused for its length, or ``None``."""
    return None if len(items) <= most else f"must have at most {most} items, found {len(items)}"


def too_large(data: Any) -> str | None:
    """Return why JSON-native data is refused for its size, or ``None``."""
    if not data:
        return None
    try:
        size = len(_AS_JSON(data))
    except (TypeError, ValueError, RecursionError):
        # Another check refuses it: it is no JSON at all.
        return None
    if size <= LONGEST_DATA:
        return None
    return f"must have at most {LONGEST_DATA} characters as JSON, found {size}"


# The effort of a comparison grows with the square of the length.
_LONGEST = 80


_RENAMED = {
    "COMPANION": "WATCHDOG_PROCESS",
    "ADMIN_ACTS": "ADMIN_ACTIONS",
    "RESERVATION": "VISIBILITY_TIMEOUT",
    "METRICS_TASKS": "METRICS_MAX_TASK_LABELS",
    "catch_up": "catch_up_window",
    "exclude": "exclude_calendars",
    # Words of other schedulers.
    "CONCURRENCY": "WORKERS",
    "THREADS": "WORKERS",
    "HISTORY_DAYS": "HISTORY_MAX_AGE",
    "crontab": "cron",
    "expression": "cron",
    "func": "callback",
    "function": "callback",
    "is_active": "enabled",
    "jitter": "spread",
    "max_instances": "overlap_policy",
    "max_retries": "max_attempts",
    "misfire_grace_time": "catch_up_window",
    "retries": "max_attempts",
    "schedule": "cron",
    "task": "callback",
    "time_limit": "timeout",
    "time_zone": "timezone",
    "tz": "timezone",
}
"""Other names of options and keys, and the present ones."""


def present_name(word: str, known: Collection[str]) -> str | None:
    """Return the present name of a renamed option or key, if it is known."""
    present = _RENAMED.get(word)
    return present if present in known else None


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the present name of a renamed option or key, or the most similar known word."""
    known = list(known)
    if present := present_name(word, known):
        return present
    by_folded = {each.casefold(): each for each in known if each != word}
    matches = get_close_matches(word[:_LONGEST].casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[matches[0]] if matches else None


def did_you_mean(word: Any, known: Iterable[str]) -> str:
    """Return the end of a message with the nearest known word, or an empty text."""
    near = nearest(word, known) if isinstance(word, str) else None
    return f"; did you mean `{near}`?" if near else ""


def hint_for_unknown(word: str, known: Collection[str], kind: str = "keys") -> str:
    """Return a hint with the nearest known word, or with all of them if none is near."""
    near = nearest(word, known)
    return f"Write `{near}`." if near else f"Known {kind}: {listed(known)}."


def listed(words: Iterable[str], joint: str = ", ") -> str:
    """Quote words as code and join them."""
    return joint.join(f"`{word}`" for word in words)


_DEEPEST = 64
_WIDEST = 1023

# NUL is refused by PostgreSQL; a lone surrogate has no UTF-8.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")


def in_short(value: Any) -> str:
    """Return a short representation of a rejected value of any type."""
    try:
        return reprlib.repr(value)
    except Exception:
        return type(value).__name__


def name_of_key(key: Any) -> str:
    """Return the name of a key, which may be anything that a dict takes."""
    return echoed(key) if isinstance(key, str) else in_short(key)


def seconds_of(value: Any) -> float | None:
    """Read a number of seconds, ``None`` where it is none; infinite where no float is so large."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def flaw_of_text(text: str, *, one_line: bool = False) -> str | None:
    """Return the reason why a text cannot be stored, or ``None``."""
    if text.isprintable():
        return None
    found = (_CONTROL if one_line else _UNSTORABLE).search(text)
    if found is None:
        return None
    kind = "control characters" if one_line else "characters that cannot be stored"
    return f"must not contain {kind}, found U+{ord(found[0]):04X} at position {found.start()}"


def flaw_of_data(value: Any, place: str = "") -> str | None:
    """Return the reason why a value is not JSON-native, with its place, or ``None``."""
    if place.count("[") > _DEEPEST:
        return f"is nested more than {_DEEPEST} deep, or contains itself"
    match value:
        case None | bool():
            return None
        case int():
            # Others read it as a floating point number, or not at all.
            wide = value.bit_length() > _WIDEST
            return _at(place, "is a number of too many digits") if wide else None
        case float():
            return None if math.isfinite(value) else _at(place, f"is {value}, which JSON lacks")
        case str():
            flaw = flaw_of_text(value)
            return None if flaw is None else _at(place, flaw)
        case list():
            return _first_flaw((item, f"{place}[{i}]") for i, item in enumerate(value))
        case dict():
            return _flaw_of_keys(value, place) or _first_flaw(
                (item, f'{place}["{echoed(key)}"]') for key, item in value.items()
            )
    return _at(place, f"is a {type(value).__name__}, which JSON lacks")


def exceeds(value: Any, most: int) -> bool:
    """Return whether JSON of a value is certainly longer than ``most`` characters.

    The value may be of any size, and contain itself: it is read only so far.
    """
    waiting, left = [value], most
    while waiting and left >= 0:
        each = waiting.pop()
        left -= len(each) if isinstance(each, str) else 1
        if isinstance(each, dict):
            waiting += islice(chain(each, each.values()), max(left, 0) + 1)
        elif isinstance(each, list):
            waiting += islice(each, max(left, 0) + 1)
    return left < 0


def _first_flaw(parts: Any) -> str | None:
    return next((flaw for part in parts if (flaw := flaw_of_data(*part)) is not None), None)


def _flaw_of_keys(value: dict[Any, Any], place: str) -> str | None:
    for key in value:
        if not isinstance(key, str):
            return _at(place, f"has the key {in_short(key)}; keys of JSON objects are strings")
        if (flaw := flaw_of_text(key)) is not None:
            return _at(place, f"has a key that {flaw}")
    return None


def _at(place: str, flaw: str) -> str:
    return f"{place} {flaw}" if place else flaw


_UNITS: Final = ("weeks", "days", "hours", "minutes", "seconds")
_FORM: Final = re.compile(
    r"P(?!$)(?:([0-9]+)W)?(?:([0-9]+)D)?"
    r"(?:T(?!$)(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:[.,][0-9]+)?)S)?)?"
)
_CALENDAR: Final = re.compile(r"P[0-9.,WD]*[0-9][YM]")
_MOST_DIGITS: Final = 15
_MICROSECONDS: Final = 1_000_000


# Many declarations have the same few durations.
@lru_cache(maxsize=1024)
def read_duration(text: str) -> timedelta:
    """Read a duration.

    Raises:
        ValueError: it is invalid, with the reason and the fix, readable after the name of
            its key.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(_flaw(text))
    parts = dict(zip(_UNITS, match.groups("0"), strict=True))
    parts["seconds"], _, fraction = parts["seconds"].replace(",", ".").partition(".")
    if any(len(digits.lstrip("0")) > _MOST_DIGITS for digits in parts.values()):
        raise ValueError("is too long a duration")
    numbers = {unit: int(digits.lstrip("0") or "0") for unit, digits in parts.items()}
    try:
        return timedelta(microseconds=int(f"{fraction[:6]:0<6}"), **numbers)
    except OverflowError:
        raise ValueError("is too long a duration") from None


@lru_cache(maxsize=1024)
def write_duration(duration: timedelta) -> str:
    """Write a duration that is not negative, hours being its greatest unit."""
    seconds, microseconds = divmod(duration // timedelta(microseconds=1), _MICROSECONDS)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{microseconds:06}".rstrip("0") if microseconds else ""
    written = f"{hours}H" if hours else ""
    written += f"{minutes}M" if minutes else ""
    if seconds or fraction or not written:
        written += f"{seconds}{fraction}S"
    return f"PT{written}"


def _flaw(text: str) -> str:
    if _CALENDAR.match(text):
        return f"{text[:40]!r} has years or months, whose length varies: write days, such as P30D"
    return f"{text[:40]!r} is not a duration in ISO 8601: write for example PT30S, PT5M or PT1H30M"
