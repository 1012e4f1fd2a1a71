"""Fields of foreign cron expressions as sets of values, and the sets as fields of ours.

Every scheduler has its own grammar and numbers weekdays in its own way. In a set, weekdays are
0 (Sunday) to 6 (Saturday).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final, NamedTuple

from ..cron.interval import SHORTEST, spelled
from ..cron.names import SHORT_NAMES
from .result import ImportedTask, UntranslatableError

Values = frozenset[int]

MONTHS: Final = SHORT_NAMES["month"]
SUNDAY_FIRST: Final = SHORT_NAMES["weekday"]

_MILLISECOND: Final = timedelta(milliseconds=1)
_ITEM: Final = re.compile(r"(\*|\?|[a-z0-9]+)(?:-([a-z0-9]+))?(?:/([0-9]+))?")
_NAMES: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_WEEKS: Final = {n: frozenset(range(7 * n - 6, min(7 * n, 31) + 1)) for n in range(1, 6)}

MACROS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")

_RANDOM: Final = "~"
_NTH_DAY: Final = re.compile(r"(?:[0-7]|[a-z]{3})#[1-5]")
_LAST_DAY: Final = re.compile(r"l(?:[0-7]|[a-z]{3})")


class Grammar(NamedTuple):
    """How a scheduler reads one field; of names, three letters in lower case count."""

    least: int
    most: int
    names: Mapping[str, int] = {}
    wraps: bool = False  # A range may go over its end, as ``22-2``.
    open_steps: bool = False  # ``5/10`` goes on to the end of the range.

    @property
    def all(self) -> Values:
        return frozenset(range(self.least, self.most + 1))

    def read(self, text: str) -> Values:
        found: set[int] = set()
        for item in text.strip().lower().split(","):
            found |= self._item(item.strip())
        return frozenset(found)

    def _item(self, item: str) -> set[int]:
        match = _ITEM.fullmatch(item)
        if match is None:
            raise UntranslatableError(f"`{item}` means nothing that can be said here")
        first, last, step = match[1], match[2], int(match[3] or 1)
        if step == 0:
            raise UntranslatableError(f"`{item}` has a step of 0")
        if first in ("*", "?"):
            return set(range(self.least, self.most + 1, step))
        low = self._number(first, item)
        high = low if last is None else self._number(last, item)
        if last is None and match[3] is not None:
            high = self.most if self.open_steps else low
        if low <= high:
            return set(range(low, high + 1, step))
        if not self.wraps:
            raise UntranslatableError(f"the range `{item}` ends before it begins")
        return set([*range(low, self.most + 1), *range(self.least, high + 1)][::step])

    def _number(self, text: str, item: str) -> int:
        number = int(text[:9]) if text.isdecimal() else self.names.get(text[:3])
        if number is None or not self.least <= number <= self.most:
            raise UntranslatableError(f"`{item}` is out of {self.least} to {self.most}")
        return number


MINUTE: Final = Grammar(0, 59)
HOUR: Final = Grammar(0, 23)
DAY: Final = Grammar(1, 31)
MONTH: Final = Grammar(1, 12, MONTHS)
WEEKDAY: Final = Grammar(0, 7, SUNDAY_FIRST)


def from_monday(values: Values) -> Values:
    return frozenset((value + 1) % 7 for value in values)


def field(values: Values, grammar: Grammar) -> str:
    if values == grammar.all:
        return "*"
    ordered = sorted(values)
    step = _step(ordered)
    if step > 1 and len(ordered) > 2:
        if values == frozenset(range(grammar.least, grammar.most + 1, step)):
            return f"*/{step}"
        return f"{ordered[0]}-{ordered[-1]}/{step}"
    return ",".join(_ranges(ordered, str))


def weekdays(values: Values) -> str:
    """Write weekdays by their names, ``*`` for all of them."""
    if len(values) == len(_NAMES):
        return "*"
    return ",".join(_ranges(sorted((value - 1) % 7 for value in values), _NAMES.__getitem__))


def both_days(days: Values, named: Values) -> tuple[str, str]:
    """Write a day of the month and a weekday that must both match.

    Here either one is enough, but the first Monday of a month is ``1#1``.

    Returns:
        the two

    Raises:
        UntranslatableError: the days are no whole weeks of a month.
    """
    if days == DAY.all or len(named) == len(_NAMES):
        return field(days, DAY), weekdays(named)
    weeks = [number for number, week in _WEEKS.items() if week <= days]
    if frozenset().union(*(_WEEKS[number] for number in weeks)) != days:
        raise UntranslatableError(
            "a day of the month and a weekday both had to match, and here either is enough: "
            "name the weekday alone and let the task look at the day"
        )
    pairs = ((day or 7, number) for number in weeks for day in named)
    return "*", ",".join(f"{_NAMES[day - 1]}#{number}" for day, number in sorted(pairs))


def every(length: timedelta) -> str:
    """Write an interval."""
    if length < SHORTEST or length % _MILLISECOND:
        raise UntranslatableError(f"an interval of {length.total_seconds():g} s is too fine")
    return f"@every {spelled(length)}"


def _step(ordered: list[int]) -> int:
    steps = {later - sooner for sooner, later in itertools.pairwise(ordered)}
    return steps.pop() if len(steps) == 1 else 0


def _ranges(ordered: list[int], name: Callable[[int], str]) -> list[str]:
    pieces: list[str] = []
    position = 0
    while position < len(ordered):
        end = position
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        if end - position >= 2:
            pieces.append(f"{name(ordered[position])}-{name(ordered[end])}")
        else:
            pieces += [name(each) for each in ordered[position : end + 1]]
        position = end + 1
    return pieces


def either_day(task: ImportedTask, text: str, *, star_is_and: bool) -> str:
    """Return the expression that names the same minutes, and tell the task what differs.

    Raises:
        UntranslatableError: there is none.
    """
    text = text.strip().lower()
    if text in MACROS:
        return text
    parts = text.split()
    if len(parts) != 5:
        raise UntranslatableError(f"`{text}` has {len(parts)} fields instead of five")
    if _RANDOM in text:
        reason = f"`{text}` leaves a value to chance: choose one, or let `spread` do it"
        raise UntranslatableError(reason)
    minute = field(MINUTE.read(parts[0]), MINUTE)
    hour = field(HOUR.read(parts[1]), HOUR)
    month = field(MONTH.read(parts[3]), MONTH)
    day, weekday = _days(task, parts[2], parts[4], star_is_and)
    return f"{minute} {hour} {day} {month} {weekday}"


def _days(task: ImportedTask, day: str, weekday: str, star_is_and: bool) -> tuple[str, str]:
    if (beyond := _beyond_values(day, weekday)) is not None:
        return beyond
    days = DAY.read(day)
    names = frozenset(value % 7 for value in WEEKDAY.read(weekday))
    both = (field(days, DAY), weekdays(names))
    if day in ("*", "?") or weekday in ("*", "?"):
        return both
    # croniter takes a field that names every day for a star, where the other one has a star.
    fulls = (both[0] == "*" and "*" in weekday) or (both[1] == "*" and "*" in day)
    if not star_is_and and fulls:
        return both
    if star_is_and and (day.startswith("*") or weekday.startswith("*")):
        text = f"both day fields had to match, because one of `{day}` and `{weekday}` begins with *"
        task.differ("days", text)
        try:
            return both_days(days, names)
        except UntranslatableError:
            reason = "and here either is enough: restrict one, and let the task look at the other"
            raise UntranslatableError(f"{text}, {reason}") from None
    if "*" in both:
        task.differ("days", "one of its day fields names every day")
        return "*", "*"
    task.differ("days", "either day field is enough, as it was")
    return both


def _beyond_values(day: str, weekday: str) -> tuple[str, str] | None:
    """Return the days of croniter's extensions: last days and nth weekdays."""
    if day == "l" and weekday in ("*", "?"):
        return "L", "*"
    if day not in ("*", "?"):
        return None
    items = weekday.split(",")
    if all(_NTH_DAY.fullmatch(item) for item in items):
        return "*", ",".join(item.upper() for item in items)
    if all(_LAST_DAY.fullmatch(item) for item in items):
        return "*", ",".join(f"{item[1:].upper()}L" for item in items)
    return None
