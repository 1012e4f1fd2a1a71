"""The ojs dialect read and searched the slow way, by other means than the package does."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from django_declarative_cron.cron import parse
from django_declarative_cron.exceptions import InvalidCronExpressionError

from .oracle import Walk

SECOND = timedelta(seconds=1)
_LIMITS = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


class OjsFields(NamedTuple):
    """Hold the texts of six fields."""

    texts: tuple[str, ...]

    def name(self, local: datetime) -> bool:
        """Tell whether a local second is named."""
        second, minute, hour, day, month, weekday = self.texts
        clock = (local.second, second, 0), (local.minute, minute, 1), (local.hour, hour, 2)
        if not all(value in _plain(text, place) for value, text, place in clock):
            return False
        if local.month not in _plain(month, 4):
            return False
        by_day = local.day in _days(day, local.year, local.month)
        by_weekday = local.day in _days_on(weekday, local.year, local.month)
        if day != "*" and weekday != "*":
            return by_day or by_weekday
        return by_day and by_weekday


@lru_cache(maxsize=4096)
def _days(text: str, year: int, month: int) -> set[int]:
    """Return the days of a month that a day field names."""
    every = range(1, monthrange(year, month)[1] + 1)
    working = [day for day in every if date(year, month, day).isoweekday() < 6]
    found: set[int] = set()
    for element in text.split(","):
        if element == "L":
            found.add(every[-1])
        elif element == "LW":
            found.add(working[-1])
        elif element.endswith("W"):
            wanted = int(element[:-1])
            if wanted in every:
                found.add(min(working, key=lambda day: abs(day - wanted)))
        else:
            found |= _plain(element, 3)
    return found


@lru_cache(maxsize=4096)
def _days_on(text: str, year: int, month: int) -> set[int]:
    """Return the days of a month that a weekday field names."""
    every = range(1, monthrange(year, month)[1] + 1)
    on = {day: date(year, month, day).isoweekday() % 7 for day in every}
    found: set[int] = set()
    for element in text.split(","):
        if element.endswith("L"):
            found.add([day for day in every if on[day] == _weekday(element[:-1])][-1])
        elif "#" in element:
            weekday, _, nth = element.partition("#")
            same = [day for day in every if on[day] == _weekday(weekday)]
            found |= set(same[int(nth) - 1 : int(nth)])
        else:
            named = {value % 7 for value in _plain(element, 5)}
            found |= {day for day in every if on[day] in named}
    return found


def ojs_fields_of(text: str) -> OjsFields:
    """Read a valid expression of five or six fields."""
    parts = text.upper().split()
    return OjsFields(tuple(parts if len(parts) == 6 else ["0", *parts]))


def _weekday(text: str) -> int:
    return (int(text) if text.isdigit() else _WEEKDAYS.index(text)) % 7


@lru_cache(maxsize=4096)
def _plain(text: str, place: int) -> frozenset[int]:
    found: set[int] = set()
    for element in text.split(","):
        if not any(rule in element for rule in ("#", "W", "L")) or element[:3] in _words(place):
            found |= _values(element, place)
    return frozenset(found)


def _words(place: int) -> list[str]:
    return {4: _MONTHS, 5: _WEEKDAYS}.get(place, [])


def _values(element: str, place: int) -> set[int]:
    low, high = _LIMITS[place]
    span, _, step = element.partition("/")
    if span == "*":
        return set(range(low, (6 if place == 5 else high) + 1, int(step or 1)))
    first, _, last = span.partition("-")
    begin = _number(first, place)
    end = _number(last, place) if last else begin
    if place == 5 and last and end == 0 < begin:
        end = 7
    return set(range(begin, end + 1, int(step or 1)))


def _number(text: str, place: int) -> int:
    if text.isdigit():
        return int(text)
    return _words(place).index(text) + (place == 4)


class Seconds(Walk):
    """Hold every second of a window with the local time it shows.

    Args:
        zone: the time zone.
        begin: first instant of the window.
        end: last instant of the window.
    """

    def __init__(self, zone: tzinfo, begin: datetime, end: datetime) -> None:
        count = int((end - begin).total_seconds())
        instants = [begin + SECOND * number for number in range(count + 1)]
        pairs = [(instant, instant.astimezone(zone)) for instant in instants]
        super().__init__(begin, end, pairs, SECOND)


def _random_value(random: Random, place: int) -> str:
    low, high = _LIMITS[place]
    value = random.randint(low, high)
    words = _words(place)
    if words and random.random() < 0.4:
        word = random.choice(words)
        return random.choice((word, word.lower(), word.capitalize()))
    return str(value)


def _random_element(random: Random, place: int) -> str:
    kind = random.random()
    if kind < 0.2:
        return f"*/{random.randint(1, 20)}"
    if place == 3 and kind < 0.5:
        return random.choice(("L", "LW", "lw", f"{random.randint(1, 31)}W"))
    if place == 5 and kind < 0.5:
        value = _random_value(random, place)
        return random.choice((f"{value}L", f"{value}#{random.randint(1, 5)}"))
    if kind < 0.75:
        low, high = _LIMITS[place]
        first, last = sorted((random.randint(low, high), random.randint(low, high)))
        step = f"/{random.randint(1, 9)}" if random.random() < 0.4 else ""
        return f"{first}-{last}{step}"
    return _random_value(random, place)


def random_ojs_text(random: Random, *, seconds: bool = False) -> str:
    """Write an expression of the ojs dialect that can come due, at night more often."""
    while True:
        fields = [
            "*"
            if random.random() < 0.35
            else ",".join(_random_element(random, place) for _ in range(random.choice((1, 1, 2))))
            for place in range(6)
        ]
        if random.random() < 0.5:
            fields[2] = random.choice(("*", "0-3", "2", "*/2", "1,2"))
        if random.random() < 0.4:
            fields[3] = fields[4] = "*"
        text = " ".join(fields if seconds else fields[1:])
        try:
            parse(text, "ojs")
        except InvalidCronExpressionError:
            continue
        return text


ojs_texts = st.builds(
    random_ojs_text,
    st.randoms(use_true_random=False, note_method_calls=False),
    seconds=st.booleans(),
)
