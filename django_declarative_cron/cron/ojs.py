"""The ojs grammar: the additions of 002 to the five fields of posix.

Steps, names in any case, Sunday as 0 and 7, ``L W #`` for days, seconds as a first of six
fields, macros and ``@every``. Text that cron programs read in two ways (``5/15``, ``FRI-MON``)
is rejected with an unambiguous replacement. Each error has a character position.

Source: 002 Cron Expression Syntax, Special Expressions.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import Final, NamedTuple

from ..exceptions import FieldParseError
from .civil import DayRule, Masks, names_a_date
from .interval import LONGEST, SHORTEST, duration, parsed, spelled
from .names import MACROS, SHORT_NAMES, sundays
from .ojs_errors import (
    Piece,
    backwards,
    beyond,
    idle_step,
    malformed,
    refuse,
    sharing_star,
    single_step,
    unknown_macro,
    unreadable_duration,
    wrong_count,
    wrong_name,
)
from .posix import EXPRESSION, FIELDS, KEPT, LONGEST_KEPT, Field, Parsed, foreign_character
from .posix import parse_text as posix_text

EVERY: Final = "@every"

_SECOND: Final = Field("second", 0, 59)
_MINUTE, _HOUR, _DAY, _MONTH = FIELDS[:4]
_WEEKDAY: Final = Field("weekday", 0, 7)
_FIVE: Final = (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)
_FIFTH = 5

_PLAIN = re.compile(r"[-0-9*, \t]*")
_PIECE = re.compile(r"[^ \t]+")
_ELEMENT = re.compile(
    r"(?:(?P<star>\*)|(?P<low>[0-9]+|[a-z]{3})(?:-(?P<high>[0-9]+|[a-z]{3}))?)"
    r"(?:/(?P<step>[0-9]+))?",
    re.IGNORECASE | re.ASCII,
)
_DAY_RULE = re.compile(r"(?P<last>LW?)|(?P<day>[0-9]+)W", re.IGNORECASE | re.ASCII)
_WEEKDAY_RULE = re.compile(
    r"(?P<weekday>[0-9]+|[a-z]{3})(?:L|#(?P<nth>[0-9]+))", re.IGNORECASE | re.ASCII
)


class _Understood(NamedTuple):
    """The values of one field, and remarks about it."""

    mask: int
    rules: tuple[DayRule, ...]
    remarks: tuple[str, ...]


def parse_text(text: str) -> Parsed:
    """Turn an expression into masks and rules, or into an interval.

    Raises:
        FieldParseError: the leftmost thing that is wrong, with its ``position``.
    """
    if _PLAIN.fullmatch(text):
        # Expressions that posix accepts mean the same here, and its grammar is faster.
        with suppress(FieldParseError):
            return posix_text(text)
    return _extended(text)


def _extended(text: str) -> Parsed:
    foreign = foreign_character(text)
    if foreign is not None:
        piece = Piece(text[foreign.place], foreign.place)
        raise refuse("FORMAT", EXPRESSION, piece, f"must not contain {foreign.words}")
    pieces = [Piece(match.group(), match.start()) for match in _PIECE.finditer(text)]
    if not pieces:
        raise refuse("EMPTY", EXPRESSION, Piece(text, 0), "must not be blank")
    if pieces[0].text.startswith("@"):
        return _special(pieces)
    if len(pieces) == len(_FIVE):
        return _fields(Piece("0", pieces[0].place), pieces)
    if len(pieces) == len(_FIVE) + 1:
        return _fields(pieces[0], pieces[1:])
    raise wrong_count(pieces, MACROS)


def _special(pieces: list[Piece]) -> Parsed:
    first, *rest = pieces
    # Folding would make letters of other scripts into these.
    word = first.text.lower() if first.text.isascii() else first.text
    if word == EVERY:
        return _interval(first, rest)
    if word not in MACROS:
        raise unknown_macro(first, (*MACROS, EVERY))
    if rest:
        raise refuse("MACRO", EXPRESSION, rest[0], f"must end after the macro {word}")
    return parse_text(MACROS[word])


def _interval(first: Piece, rest: list[Piece]) -> Parsed:
    joined = "".join(piece.text for piece in rest).lower()
    length = duration(joined)
    if length is None or len(rest) != 1:
        raise unreadable_duration(first, rest)
    if length > LONGEST:
        reason = f"must be an interval of at most {spelled(LONGEST)} (50 years)"
        raise refuse("RANGE", EXPRESSION, rest[0], reason)
    if length < SHORTEST:
        return parsed(SHORTEST, (f"`{first.text} {joined[-20:]}` counts as one second",))
    return parsed(length)


def _fields(second: Piece, pieces: list[Piece]) -> Parsed:
    seconds = _field(second, _SECOND)
    minutes, hours, days, months, weekdays = map(_field, pieces, _FIVE)
    restricted = [piece.text != "*" for piece in pieces]
    masks = Masks(
        minutes=minutes.mask,
        hours=hours.mask,
        days=days.mask,
        months=months.mask,
        weekdays=(weekdays.mask | weekdays.mask >> 7) & 0x7F,
        either_day=restricted[2] and restricted[4],
        seconds=seconds.mask,
        day_rules=days.rules,
        weekday_rules=weekdays.rules,
    )
    if not names_a_date(masks):
        raise refuse("NEVER", EXPRESSION, pieces[2], "matches no date")
    understood = (seconds, minutes, hours, days, months, weekdays)
    remarks = tuple(remark for each in understood for remark in each.remarks)
    return Parsed(masks, restricted[1], restricted[2], restricted[4], remarks)


def _field(piece: Piece, field: Field) -> _Understood:
    if len(piece.text) <= LONGEST_KEPT:
        # Parse a rejected expression again, because only the piece has its position.
        with suppress(FieldParseError):
            return _remembered(piece.text, field)
    return _read(piece, field)


@lru_cache(maxsize=len(_FIVE) * KEPT)
def _remembered(text: str, field: Field) -> _Understood:
    return _read(Piece(text, 0), field)


def _read(piece: Piece, field: Field) -> _Understood:
    if piece.text == "*":
        high = 6 if field is _WEEKDAY else field.high
        return _Understood((2 << high) - (1 << field.low), (), ())
    mask, rules, remarks = 0, set(), []
    for element in piece.elements():
        rule = _rule(element, field)
        if rule is not None:
            rules.add(rule)
            continue
        match = _ELEMENT.fullmatch(element.text)
        if match is None:
            raise malformed(element, field)
        if element.text == "*":
            raise sharing_star(element, field)
        values = _values(element, match, field)
        mask |= sum(1 << value for value in values)
        if match["step"] and len(values) == 1:
            remarks.append(idle_step(element, field, values[0]))
    return _Understood(mask, tuple(sorted(rules)), tuple(remarks))


def _values(element: Piece, match: re.Match[str], field: Field) -> range:
    if match["star"]:
        low, high = field.low, 6 if field is _WEEKDAY else field.high
    else:
        low, high = _bounds(element, match, field)
    if match["step"] is None:
        return range(low, high + 1)
    digits = match["step"].lstrip("0")
    if not digits:
        reason = "must have a step of at least 1"
        fix = element.text[: match.start("step") - 1]
        raise refuse("STEP", field.name, element, reason, fix=fix)
    if not match["star"] and match["high"] is None:
        raise single_step(element, field, match["low"], match["step"])
    step = int(digits) if len(digits) <= 2 else 100
    return range(low, high + 1, step)


def _bounds(element: Piece, match: re.Match[str], field: Field) -> tuple[int, int]:
    low = _number(element.part(match, "low"), field)
    if match["high"] is None:
        return low, low
    high = _number(element.part(match, "high"), field)
    if field is _WEEKDAY:
        low, high = sundays(low, high)
    if low > high:
        raise backwards(element, field, match)
    return low, high


def _number(piece: Piece, field: Field) -> int:
    if not piece.text.isdigit():
        number = SHORT_NAMES.get(field.name, {}).get(piece.text.lower())
        if number is None:
            raise wrong_name(piece, field)
        return number
    # Check the length before int(), as the number of digits is not limited.
    significant = piece.text.lstrip("0") or "0"
    number = int(significant) if len(significant) <= 2 else field.high + 1
    if field.low <= number <= field.high:
        return number
    raise beyond(piece, field)


def _rule(element: Piece, field: Field) -> DayRule | None:
    if field is _DAY and (match := _DAY_RULE.fullmatch(element.text)):
        if match["last"]:
            return DayRule("last" if len(match["last"]) == 1 else "last_working_day")
        return DayRule("nearest_working_day", _number(element.part(match, "day"), field))
    if field is _WEEKDAY and (match := _WEEKDAY_RULE.fullmatch(element.text)):
        weekday = _number(element.part(match, "weekday"), field) % 7
        if match["nth"] is None:
            return DayRule("last_weekday", weekday)
        return DayRule("nth_weekday", weekday, _nth(element.part(match, "nth")))
    return None


def _nth(piece: Piece) -> int:
    number = piece.text.lstrip("0")
    if len(number) == 1 and int(number) <= _FIFTH:
        return int(number)
    reason = f"must count a weekday from 1 to 5 behind #, found {piece.text[:20]}"
    raise refuse("RANGE", _WEEKDAY.name, piece, reason)
