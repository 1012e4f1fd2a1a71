"""The posix grammar: five fields of numbers, ranges and lists.

Source: 001 Cron Language Specification. Every extension of other crons is rejected, each
with its own reason code, so that messages, checks and hints can distinguish them.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from ..exceptions import FieldParseError
from .civil import Masks

EXPRESSION: Final = "expression"


class Field(NamedTuple):
    """Describe one field: its name and its least and greatest value."""

    name: str
    low: int
    high: int

    @property
    def full(self) -> int:
        """Return the mask of all its values."""
        return (2 << self.high) - (1 << self.low)


FIELDS: Final = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day", 1, 31),
    Field("month", 1, 12),
    Field("weekday", 0, 6),
)
WEEKDAY: Final = FIELDS[4]

KEPT: Final = 512
"""Number of field texts whose parsed values are cached."""

LONGEST_KEPT: Final = 1024
"""Fields of a longer expression are read anew each time."""

_CLEAN = re.compile(r"[\t -~]*")
_ELEMENT = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_DECIMAL = re.compile(r"[-0-9]*[0-9]\.[-.0-9]*|\.[0-9]+")
_NAME = re.compile(r"[A-Za-z]+(?:-[A-Za-z0-9]+)?|[0-9]+-[A-Za-z]+")
_QUARTZ = re.compile(r"[?#]|(?<![A-Z])(?:LW|L|W)(?![A-Z])", re.IGNORECASE)
_SHOWN = 40


def refuse(code: str, field: str, value: str, reason: str) -> FieldParseError:
    """Return the error of a field, with its reason code.

    Args:
        code: TYPE, LENGTH, EMPTY, COUNT, MACRO, STEP, NAME, QUARTZ, RANGE, SUN7, WRAP, FORMAT,
            DECIMAL or NEVER.
        field: expression, minute, hour, day, month or weekday.
        value: the invalid text.
        reason: the error, readable after ``<field> field``.
    """
    error = FieldParseError(reason, value, field)
    vars(error)["code"] = code
    return error


def with_range(error: FieldParseError, field: Field) -> FieldParseError:
    """Add the field whose values a number exceeds, so that hints can name them."""
    vars(error)["range"] = field
    return error


def shown(text: str) -> str:
    """Quote a piece of input for a message, shortened."""
    return f'"{text}"' if len(text) <= _SHOWN else f'"{text[:_SHOWN]}…"'


class Parsed(NamedTuple):
    """The content of an expression: its values, and which fields are restricted.

    ``remarks`` describe surprising properties of an accepted text; ``every`` is set for an
    interval, which names no values.
    """

    masks: Masks
    hour_restricted: bool
    day_restricted: bool
    weekday_restricted: bool
    remarks: tuple[str, ...] = ()
    every: timedelta | None = None


def parse_text(text: str) -> Parsed:
    """Turn an expression into masks.

    Raises:
        FieldParseError: the leftmost thing that is wrong.
    """
    if not text.isprintable() and (foreign := foreign_character(text)) is not None:
        raise refuse("FORMAT", EXPRESSION, text, f"must not contain {foreign.words}")
    texts = text.split()
    if len(texts) != len(FIELDS) or texts[0].startswith("@"):
        raise _not_five(text, texts)
    # A longer text is read anew each time, so the cache stays small.
    read = _remembered if len(text) <= LONGEST_KEPT else parse_field
    minutes, hours, days, months, weekdays = map(read, texts, FIELDS)
    _, hour, day, _, weekday = texts
    has_day, has_weekday = day != "*", weekday != "*"
    if has_day and not has_weekday and not _has_date(days, months):
        raise refuse("NEVER", EXPRESSION, text, "matches no date")
    masks = Masks(minutes, hours, days, months, weekdays, has_day and has_weekday)
    return Parsed(masks, hour != "*", has_day, has_weekday)


def parse_field(text: str, field: Field) -> int:
    """Turn the text of one field into a mask.

    Raises:
        FieldParseError: the leftmost element that is wrong.
    """
    if text == "*":
        return field.full
    mask = 0
    for element in text.split(","):
        match = _ELEMENT.fullmatch(element)
        if match is None:
            raise _malformed(element, field)
        first, last = match.groups()
        low = _bounded(first, field)
        high = low if last is None else _bounded(last, field)
        if low > high:
            reason = f"must not wrap around, {shown(element)} runs backwards"
            raise refuse("WRAP", field.name, element, reason)
        mask |= (2 << high) - (1 << low)
    return mask


# Of a thousand expressions that are all different, most fields are the same.
_remembered = lru_cache(maxsize=len(FIELDS) * KEPT)(parse_field)


def _bounded(digits: str, field: Field) -> int:
    # Check the length before int(), as the number of digits is not limited.
    significant = digits.lstrip("0") or "0"
    number = int(significant) if len(significant) <= 2 else field.high + 8
    if field.low <= number <= field.high:
        return number
    reason = f"must be within {field.low}-{field.high}, found {shown(digits)[1:-1]}"
    if field is WEEKDAY and number == 7:
        raise refuse("SUN7", field.name, digits, f"{reason}: Sunday is 0")
    raise with_range(refuse("RANGE", field.name, digits, reason), field)


class Foreign(NamedTuple):
    """A character that no expression may contain, and its position."""

    place: int
    words: str


def foreign_character(text: str) -> Foreign | None:
    """Find the first white space or control character that separates nothing."""
    if (text.isascii() and text.isprintable()) or _CLEAN.fullmatch(text):
        return None
    for place, character in enumerate(text):
        blank = character.isspace() and character not in " \t"
        if blank or (unicodedata.category(character) == "Cc" and character != "\t"):
            code_point = f"U+{ord(character):04X}"
            name = unicodedata.name(character, "a control character")
            return Foreign(place, f"{code_point} ({name}), only spaces and tabs separate")
    return None


def _not_five(text: str, texts: list[str]) -> FieldParseError:
    if not texts:
        return refuse("EMPTY", EXPRESSION, text, "must not be blank")
    if texts[0].startswith("@"):
        return refuse("MACRO", EXPRESSION, text, f"must not be a macro ({shown(texts[0])})")
    reason = f"must have exactly 5 parts (minute hour day month weekday), found {len(texts)}"
    return refuse("COUNT", EXPRESSION, text, reason)


def _malformed(element: str, field: Field) -> FieldParseError:
    quartz = _QUARTZ.search(element)
    if "/" in element:
        code, reason = "STEP", f"must not use steps ({shown(element)})"
    elif quartz:
        code, reason = "QUARTZ", f"must not use the Quartz token {shown(quartz.group())}"
    elif _NAME.fullmatch(element):
        code, reason = "NAME", f"must use numbers, not names ({shown(element)})"
    elif _DECIMAL.fullmatch(element):
        code, reason = "DECIMAL", f"must use whole numbers, found {shown(element)}"
    else:
        code = "FORMAT"
        reason = f"must be *, or a list of numbers and ranges such as 1,3-5: found {shown(element)}"
    return refuse(code, field.name, element, reason)


def _has_date(days: int, months: int) -> bool:
    longest = 29 if months == 1 << 2 else 30 if not months & _LONG_MONTHS else 31
    return bool(days & (2 << longest) - 1)


_LONG_MONTHS = sum(1 << month for month in (1, 3, 5, 7, 8, 10, 12))
