"""Errors of the ojs grammar: position, reason and fix.

A proposal marked as ``fix`` replaces the rejected characters and has the intended meaning;
an example only shows the form.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from ..exceptions import FieldParseError
from . import posix
from .names import SHORT_NAMES, short_name
from .posix import EXPRESSION, Field, shown

_DECIMAL = re.compile(r"[0-9]*\.[0-9]+")
_STEP = re.compile(r"([^/]*)/(.*)", re.DOTALL)
_NAMED = re.compile(r"[a-z]{3}(?:-[a-z]{3})?(?:/[0-9]+)?", re.IGNORECASE | re.ASCII)
_LONG_NAME = re.compile(r"[a-z]{4,}", re.IGNORECASE | re.ASCII)
_LONGER_UNITS: Final = {"d": 24, "day": 24, "days": 24, "w": 168, "week": 168, "weeks": 168}
_UNITS: Final = {
    word: unit
    for unit, words in {
        "ms": "ms msec millisecond milliseconds",
        "s": "s sec secs second seconds",
        "m": "m min mins minute minutes",
        "h": "h hr hrs hour hours",
    }.items()
    for word in words.split()
}
_AMOUNT = re.compile(r"([0-9]{1,6})([a-z]+)")
_EXAMPLES: Final = {"day": "1,15-20,L", "weekday": "MON-FRI"}


class Piece(NamedTuple):
    """A piece of an expression, and the place of its first character, from 0."""

    text: str
    place: int

    def elements(self) -> Iterator[Piece]:
        """Yield the parts between commas."""
        place = self.place
        for text in self.text.split(","):
            yield Piece(text, place)
            place += len(text) + 1

    def part(self, match: re.Match[str], group: str) -> Piece:
        """Return the piece that a group of a match within this one has taken."""
        return Piece(match[group], self.place + match.start(group))


def refuse(
    code: str, field: str, piece: Piece, reason: str, *, fix: str = "", example: str = ""
) -> FieldParseError:
    """Return an error with a character position.

    Args:
        code: as in the posix grammar.
        field: expression, second, minute, hour, day, month or weekday.
        piece: the rejected text.
        reason: the error, readable after ``<field> field``.
        fix: the replacement for the piece.
        example: a form that is accepted.
    """
    reason = f"{reason} (character {piece.place + 1})"
    if fix:
        reason = f'{reason}; write "{fix}"'
    elif example:
        reason = f'{reason}; write for example "{example}"'
    error = posix.refuse(code, field, piece.text, reason)
    vars(error).update(position=piece.place, fix=fix or None)
    return error


def wrong_count(pieces: list[Piece], macros: Iterable[str]) -> FieldParseError:
    """Refuse a number of fields other than five and six."""
    reason = f"must have 5 parts, or 6 with seconds first, found {len(pieces)}"
    first = pieces[0]
    if len(pieces) == 1 and f"@{first.text.lower()}" in macros:
        return refuse("COUNT", EXPRESSION, first, reason, fix=f"@{first.text.lower()}")
    if len(pieces) == 7:
        reason = f"{reason}: there is no field for years"
    place = pieces[6] if len(pieces) > 6 else pieces[-1]
    return refuse("COUNT", EXPRESSION, place, reason, example="*/15 9-17 * * MON-FRI")


def unknown_macro(piece: Piece, macros: Iterable[str]) -> FieldParseError:
    """Refuse a word after @ that is not a macro."""
    near = difflib.get_close_matches(piece.text[:20].lower(), macros, n=1)
    reason = f"must not be the unknown macro {shown(piece.text)}"
    return refuse("MACRO", EXPRESSION, piece, reason, fix=near[0] if near else "", example="@daily")


def unreadable_duration(first: Piece, rest: list[Piece]) -> FieldParseError:
    """Refuse the text after ``@every``."""
    if not rest:
        reason = "must say a duration behind @every"
        return refuse("FORMAT", EXPRESSION, first, reason, fix="", example="@every 1h30m")
    last = rest[-1]
    whole = Piece(" ".join(piece.text for piece in rest), rest[0].place)
    reason = f"must be a duration in h, m, s and ms, found {shown(whole.text)}"
    one_word = last.place + len(last.text) - whole.place == len(whole.text)
    fix = _duration_meant(whole.text.lower()) if one_word else ""
    return refuse("FORMAT", EXPRESSION, whole, reason, fix=fix, example="1h30m")


def _duration_meant(text: str) -> str:
    """Spell a duration of longer units and words, empty where it is not certain."""
    amounts = dict.fromkeys(("h", "m", "s", "ms"), 0)
    rest = text.replace(" ", "")
    while rest:
        match = _AMOUNT.match(rest)
        if match is None:
            return ""
        number, word = int(match[1]), match[2]
        if word in _LONGER_UNITS:
            number, word = number * _LONGER_UNITS[word], "h"
        if word not in _UNITS:
            return ""
        amounts[_UNITS[word]] += number
        rest = rest[match.end() :]
    return "".join(f"{number}{unit}" for unit, number in amounts.items() if number)


def beyond(piece: Piece, field: Field) -> FieldParseError:
    """Refuse a number outside its field."""
    reason = f"must be within {field.low}-{field.high}, found {shown(piece.text)[1:-1]}"
    return posix.with_range(refuse("RANGE", field.name, piece, reason), field)


def wrong_name(piece: Piece, field: Field) -> FieldParseError:
    """Refuse a word that is no name of the field."""
    known = SHORT_NAMES.get(field.name, {})
    near = difflib.get_close_matches(piece.text.lower(), known, n=1)
    if not known:
        reason = f"must use numbers, not names, found {shown(piece.text)}"
        return refuse("NAME", field.name, piece, reason)
    reason = f"must use names such as {next(iter(known)).upper()}, found {shown(piece.text)}"
    return refuse("NAME", field.name, piece, reason, fix=near[0].upper() if near else "")


def sharing_star(element: Piece, field: Field) -> FieldParseError:
    """Reject a star in a list, because the other elements have no effect then."""
    reason = "must have * alone, it names everything already"
    return refuse("FORMAT", field.name, element, reason)


def single_step(element: Piece, field: Field, low: str, step: str) -> FieldParseError:
    """Refuse ``5/15``: some crons read it as 5, others as every 15th from 5 on."""
    last = 6 if field.name == "weekday" else field.high
    reason = f"must have a range before the step, {shown(element.text)} means two things"
    return refuse("STEP", field.name, element, reason, fix=f"{low}-{last}/{step}")


def idle_step(element: Piece, field: Field, value: int) -> str:
    """Remark on a step that is longer than its range."""
    return (
        f"`{element.text[:20]}` in the {field.name} field names {value} only: "
        "the step is longer than what it divides"
    )


def backwards(element: Piece, field: Field, match: re.Match[str]) -> FieldParseError:
    """Refuse a range that wraps around, spelled as two."""
    low, high = match["low"], match["high"]
    reason = f"must not wrap around, {shown(element.text)} runs backwards"
    if match["step"]:
        return refuse("WRAP", field.name, element, reason)
    first = short_name(field.name, field.low) if high.isalpha() else str(field.low)
    last = _last(field, low)
    if field.name == "weekday":
        # Sunday closes the first of the two ranges.
        first = "MON" if high.isalpha() else "1"
    fix = f"{_range(low, last)},{_range(first, high)}"
    return refuse("WRAP", field.name, element, reason, fix=fix)


def _last(field: Field, like: str) -> str:
    """Return the last value of a field, as a name or a number like another one."""
    if not like.isalpha():
        return str(field.high)
    return short_name(field.name, 0 if field.name == "weekday" else field.high)


def _range(low: str, high: str) -> str:
    return low if low.lower() == high.lower() else f"{low}-{high}"


def malformed(element: Piece, field: Field) -> FieldParseError:
    """Refuse a text that is neither a number, a name, a range, a step nor a rule."""
    text = element.text
    if _LONG_NAME.search(text) and (short := _shortened(text, field)):
        reason = f"must use names of three letters, found {shown(text)}"
        return refuse("NAME", field.name, element, reason, fix=short)
    if (match := _STEP.fullmatch(text)) and match[1] and not match[2].isdecimal():
        reason = f"must have a whole number as its step, found {shown(match[2])}"
        return refuse("STEP", field.name, Piece(match[2], element.place + match.start(2)), reason)
    if (token := _quartz(element, field)) is not None:
        return token
    if _DECIMAL.search(text):
        return refuse(
            "DECIMAL", field.name, element, f"must use whole numbers, found {shown(text)}"
        )
    reason = f"must be *, or a list of values, ranges and steps: found {shown(text)}"
    example = _EXAMPLES.get(field.name, "*/2")
    return refuse("FORMAT", field.name, element, reason, example=example)


def _shortened(text: str, field: Field) -> str:
    """Cut full names to three letters, empty where a word is none or something is left over."""
    known: Mapping[str, int] = SHORT_NAMES.get(field.name, {})
    pieces = _LONG_NAME.sub(lambda word: word[0][:3].upper(), text)
    words = re.findall(r"[a-z]+", text, re.IGNORECASE)
    are_names = all(word[:3].lower() in known for word in words)
    return pieces if are_names and _NAMED.fullmatch(pieces) else ""


def _quartz(element: Piece, field: Field) -> FieldParseError | None:
    match = re.search(r"[?#]|(?<![a-z])(?:LW|L|W)(?![a-z])", element.text, re.IGNORECASE)
    if match is None:
        return None
    token, name = Piece(match[0], element.place + match.start()), field.name
    if token.text == "?":
        reason = 'must not use the Quartz token "?"'
        return refuse("QUARTZ", name, token, reason, fix="*" if element.text == "?" else "")
    if name not in _EXAMPLES:
        reason = f"must not use {shown(token.text)}, which is for days"
        return refuse("QUARTZ", name, token, reason)
    if name == "weekday" and element.text.upper() == "L":
        reason = "must say which weekday is the last one"
        return refuse("QUARTZ", name, token, reason, example="FRIL")
    forms = "L, LW and 15W" if name == "day" else "5L and 5#3"
    reason = f"must use {shown(token.text)} as in {forms}, found {shown(element.text)}"
    return refuse("QUARTZ", name, element, reason)
