"""Whether a value can be stored as it is: text of any database, data of any JSON."""

from __future__ import annotations

import math
import re
import reprlib
from itertools import chain, islice
from typing import Any

from ..exceptions import echoed

_DEEPEST = 64
_WIDEST = 1023

# NUL is refused by PostgreSQL; a lone surrogate has no UTF-8.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")


def in_short(value: Any) -> str:
    """Show a value that was refused, whatever it is.

    Args:
        value: what was given; Python writes no number of thousands of digits.
    """
    try:
        return reprlib.repr(value)
    except Exception:
        return type(value).__name__


def name_of_key(key: Any) -> str:
    """Give the name of a key, which may be anything that a dict takes.

    Args:
        key: as written.
    """
    return echoed(key) if isinstance(key, str) else in_short(key)


def seconds_of(value: Any) -> float | None:
    """Read a number of seconds, ``None`` where it is none; infinite where no float is so large.

    Args:
        value: what was given.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def flaw_of_text(text: str, *, one_line: bool = False) -> str | None:
    """Say what keeps a text from being stored, or ``None``.

    Args:
        text: what was given.
        one_line: refuse every control character, line breaks and tabs included.
    """
    if text.isprintable():
        return None
    found = (_CONTROL if one_line else _UNSTORABLE).search(text)
    if found is None:
        return None
    kind = "control characters" if one_line else "characters that cannot be stored"
    return f"must not contain {kind}, found U+{ord(found[0]):04X} at position {found.start()}"


def flaw_of_data(value: Any, place: str = "") -> str | None:
    """Say what keeps a value from being JSON-native and where, or ``None``.

    Args:
        value: what was given.
        place: the way to it from the key, such as ``[0]["site"]``.
    """
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
