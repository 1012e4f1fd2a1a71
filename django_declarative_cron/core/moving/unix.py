"""Cron expressions as crontab files and croniter have them."""

from __future__ import annotations

import re
from typing import Final

from . import fields
from .moved import Difference, UntranslatableError

MACROS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")

AS_CRON_DOES: Final = (
    Difference(
        "catch-up",
        '"catch_up_window" of 0 keeps that what was missed is left out; without it one run '
        "makes up for the latest",
    ),
    Difference(
        "overlap",
        '"allow" keeps that runs may overlap; leave it out to skip a time during a run',
    ),
    Difference(
        "retry", "the policy of one attempt keeps that cron retries nothing; leave it out for three"
    ),
)
"""What entries keep of cron, and what becomes of it without a word."""

_RANDOM: Final = "~"
_NTH: Final = re.compile(r"(?:[0-7]|[a-z]{3})#[1-5]")
_LAST: Final = re.compile(r"l(?:[0-7]|[a-z]{3})")


def either_day(text: str, *, star_is_and: bool) -> tuple[str, list[Difference]]:
    """Return the expression that names the same minutes.

    Raises:
        UntranslatableError: there is none.
    """
    text = text.strip().lower()
    if text in MACROS:
        return text, []
    parts = text.split()
    if len(parts) != 5:
        raise UntranslatableError(f"`{text}` has {len(parts)} fields instead of five")
    if _RANDOM in text:
        reason = f"`{text}` leaves a value to chance: choose one, or let `spread` do it"
        raise UntranslatableError(reason)
    minute, hour, day, month, weekday = parts
    front = [
        fields.field(fields.MINUTE.read(minute), fields.MINUTE),
        fields.field(fields.HOUR.read(hour), fields.HOUR),
    ]
    days, told = _days(day, weekday, star_is_and)
    months = fields.field(fields.MONTH.read(month), fields.MONTH)
    return " ".join([*front, days[0], months, days[1]]), told


def _days(day: str, weekday: str, star_is_and: bool) -> tuple[tuple[str, str], list[Difference]]:
    if (beyond := _beyond_values(day, weekday)) is not None:
        return beyond, []
    days = fields.DAY.read(day)
    named = fields.as_weekdays(fields.WEEKDAY.read(weekday))
    said = (fields.field(days, fields.DAY), fields.weekdays(named))
    if day in ("*", "?") or weekday in ("*", "?"):
        return said, []
    # croniter takes a field that names every day for a star, where the other one has a star.
    fulls = (said[0] == "*" and "*" in weekday) or (said[1] == "*" and "*" in day)
    if not star_is_and and fulls:
        return said, []
    if star_is_and and (day.startswith("*") or weekday.startswith("*")):
        told = f"both day fields had to match, because one of `{day}` and `{weekday}` begins with *"
        try:
            return fields.both_days(days, named), [Difference("days", told)]
        except UntranslatableError:
            reason = "and here either is enough: restrict one, and let the task look at the other"
            raise UntranslatableError(f"{told}, {reason}") from None
    if "*" in said:
        # One of them names every day, so that either of them is every day.
        return ("*", "*"), [Difference("days", "one of its day fields names every day")]
    return said, [Difference("days", "either day field is enough, as it was")]


def _beyond_values(day: str, weekday: str) -> tuple[str, str] | None:
    """Return the extensions of croniter that this reader knows: last days and nth weekdays."""
    if day == "l" and weekday in ("*", "?"):
        return "L", "*"
    if day not in ("*", "?"):
        return None
    items = weekday.split(",")
    if all(_NTH.fullmatch(item) for item in items):
        return "*", ",".join(item.upper() for item in items)
    if all(_LAST.fullmatch(item) for item in items):
        return "*", ",".join(f"{item[1:].upper()}L" for item in items)
    return None
