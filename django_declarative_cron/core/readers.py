"""Readers of values from settings: each returns a value, or raises ``ValueError``.

The reason is readable after the name of the key. It shows no texts, because they may be secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple

from ..formatting import format_duration
from .declarations.values import (
    LONGEST_NAME,
    MOST_WHOLE,
    did_you_mean,
    flaw_of_text,
    in_short,
    listed,
    name_of_key,
    plain_text,
    seconds_of,
)

Reader = Callable[[Any], Any]

ZERO: Final = timedelta(0)
TENTH: Final = timedelta(milliseconds=100)
SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
CENTURY: Final = timedelta(days=36_500)
"""Longer durations lead to instants beyond the last year of the calendar."""


class Flaw(NamedTuple):
    """A key that is unknown, or whose value is refused; ``reason`` is readable after its name."""

    key: str
    value: Any
    reason: str
    is_unknown: bool = False


def read_each(
    given: Mapping[Any, Any], readers: Mapping[str, Reader]
) -> tuple[dict[str, Any], list[Flaw]]:
    """Return the values of a dictionary, each read by the reader of its key, and the flaws."""
    values: dict[str, Any] = {}
    flaws: list[Flaw] = []
    for key, value in given.items():
        if key not in readers:
            name = name_of_key(key)
            reason = f"is not a known key{did_you_mean(name, readers)}"
            flaws.append(Flaw(name, value, reason, is_unknown=True))
            continue
        try:
            values[key] = readers[key](value)
        except ValueError as error:
            flaws.append(Flaw(key, value, str(error)))
    return values, flaws


def read_keys(given: object, readers: Mapping[str, Reader], kind: str = "a dict") -> dict[str, Any]:
    """Return the values of a dictionary without flaws; ``kind`` is what is accepted."""
    if not isinstance(given, Mapping):
        raise ValueError(f"must be {kind}, not {type(given).__name__}")
    values, flaws = read_each(given, readers)
    for key, _, reason, is_unknown in flaws:
        if is_unknown:
            tail = did_you_mean(key, readers) or f"; known keys: {listed(readers)}"
            raise ValueError(f"has an unknown key `{key[:40]}`{tail}")
        raise ValueError(f"has a `{key}` that {reason}")
    return values


def unless_none(read: Reader) -> Reader:
    """Return a reader that accepts ``None`` too."""
    return lambda value: None if value is None else read(value)


def truth(value: Any) -> bool:
    """Read ``True`` or ``False``."""
    if not isinstance(value, bool):
        raise ValueError(f"must be True or False, not {_shown(value)}")
    return value


def whole(least: int = 1, most: int = MOST_WHOLE, unit: str = "") -> Reader:
    """Return a reader of whole numbers."""

    def read(value: Any) -> int:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not least <= value <= most:
            bounds = f"a whole number from {least} to {most}"
            raise ValueError(f"must be {bounds}{unit and ' '}{unit}, not {_shown(value)}")
        return int(value)

    return read


def duration(least: timedelta, most: timedelta = CENTURY) -> Reader:
    """Return a reader of durations, given as such or in seconds."""

    def read(value: Any) -> timedelta:
        length = _length(value)
        if not least <= length <= most:
            bounds = f"from {_words(least)} to {_words(most)}"
            raise ValueError(f"must be {bounds}, not {_words(length)}")
        return length

    return read


def _length(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    seconds = seconds_of(value)
    if seconds is None:
        raise ValueError(f"must be a timedelta or a number of seconds, not {_shown(value)}")
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        return timedelta.max if seconds > 0 else timedelta.min


def _words(length: timedelta) -> str:
    words = format_duration(abs(length), units=4)
    return f"-{words}" if length < ZERO else words


def text(least: int = 1, most: int = LONGEST_NAME) -> Reader:
    """Return a reader of texts on one line."""

    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(f"must be a text, not {type(value).__name__}")
        if not least <= len(value) <= most:
            raise ValueError(f"must have {least} to {most} characters, found {len(value)}")
        if (flaw := flaw_of_text(value, one_line=True)) is not None:
            raise ValueError(flaw)
        return plain_text(value)

    return read


def one_of(choices: tuple[str, ...]) -> Reader:
    """Return a reader of one of some words."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            tail = did_you_mean(value, choices)
            raise ValueError(f"must be {listed(choices, ' or ')}{tail}")
        return value

    return read


def list_of(read: Reader, words: str) -> Reader:
    """Return a reader of lists that are not empty."""

    def read_all(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise ValueError(f"must be a list of {words}")
        return tuple(map(read, value))

    return read_all


def _shown(value: Any) -> str:
    return in_short(value) if isinstance(value, int | float) else type(value).__name__
