"""Random expressions, and the moments where a zone's clock changes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from django_declarative_cron.cron import CronExpression, Fold, Gap, next_transitions, parse
from django_declarative_cron.exceptions import InvalidCronExpressionError

from .tzif import changes

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RULES: tuple[tuple[Gap, Fold], ...] = (
    ("skip", "first"),
    ("skip", "both"),
    ("shift", "first"),
    ("shift", "both"),
)
_LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


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
        fields = [random_field(random, *limits) for limits in _LIMITS]
        if random.random() < 0.5:
            fields[1] = random_field(random, 0, 3)
        if random.random() < 0.5:
            fields[2] = fields[3] = "*"
        if is_valid(" ".join(fields)):
            return " ".join(fields)


def is_valid(text: str) -> bool:
    """Tell whether the package accepts an expression."""
    try:
        parse(text)
    except InvalidCronExpressionError:
        return False
    return True


texts = st.builds(random_text, st.randoms(use_true_random=False, note_method_calls=False))
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
