"""Random expressions, and the moments where a zone's clock changes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from django_declarative_cron.cron import CronExpression, Fold, Gap, next_transitions, parse
from django_declarative_cron.exceptions import InvalidCronExpressionError

from .oracle import LIMITS, words_of
from .tzif import changes

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RULES: tuple[tuple[Gap, Fold], ...] = (
    ("skip", "first"),
    ("skip", "both"),
    ("shift", "first"),
    ("shift", "both"),
)


def random_field(random: Random, low: int, high: int) -> str:
    """Write a field: often a star, else a list of numbers and ranges."""
    if random.random() < 0.4:
        return "*"
    elements = []
    for _ in range(random.choice((1, 1, 2, 3))):
        first, last = sorted((random.randint(low, high), random.randint(low, high)))
        elements.append(f"{first}-{last}" if random.random() < 0.4 else str(first))
    return ",".join(elements)


def random_text(random: Random) -> str:
    """Write an expression that can come due, at night more often than by day."""
    while True:
        fields = [random_field(random, *limits) for limits in (*LIMITS[1:5], (0, 6))]
        if random.random() < 0.5:
            fields[1] = random_field(random, 0, 3)
        if random.random() < 0.5:
            fields[2] = fields[3] = "*"
        if _is_valid(text := " ".join(fields)):
            return text


def _is_valid(text: str, dialect: str = "posix") -> bool:
    try:
        parse(text, dialect)
    except InvalidCronExpressionError:
        return False
    return True


def _random_value(random: Random, place: int) -> str:
    low, high = LIMITS[place]
    value = random.randint(low, high)
    words = words_of(place)
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
        low, high = LIMITS[place]
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
        if _is_valid(text, "ojs"):
            return text


randoms = st.randoms(use_true_random=False, note_method_calls=False)
texts = st.builds(random_text, randoms)
ojs_texts = st.builds(random_ojs_text, randoms, seconds=st.booleans())
seeds = st.integers(0, 2**32)


def change_instants(key: str, first: int, last: int) -> list[datetime]:
    """List when a zone's offset changes within whole years, by its file and then its rule."""
    begin, end = datetime(first, 1, 1, tzinfo=UTC), datetime(last + 1, 1, 1, tzinfo=UTC)
    listed = [EPOCH + timedelta(seconds=change.second) for change in changes(key)]
    found = [instant for instant in listed if begin <= instant < end]
    rule_starts = max([begin, *listed])
    if rule_starts < end:
        found += [each.instant for each in next_transitions(ZoneInfo(key), rule_starts, end)]
    return found


def steps(cron: CronExpression, zone: ZoneInfo, start: datetime, count: int) -> Iterator[datetime]:
    """Yield occurrences one after the other, as far as there are any."""
    for _ in range(count):
        found = cron.next_after(start, zone)
        if found is None:
            return
        start = found
        yield found
