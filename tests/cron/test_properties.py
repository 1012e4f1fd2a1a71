"""Next is the least and previous the greatest: against a walk over every minute or second.

Expressions of the ojs dialect are compared with two other libraries too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Literal
from zoneinfo import ZoneInfo

import pytest
from croniter import CroniterBadDateError, croniter
from cronsim import CronSim, CronSimError
from hypothesis import given, settings
from hypothesis import strategies as st

from django_declarative_cron.cron import Fold, Gap, next_transitions, parse
from django_declarative_cron.cron.timeline import (
    BLOCK,
    SECONDS_PER_DAY,
    to_instant,
    to_second,
)

from ..effort import IS_COMPLETE
from .oracle import (
    SECOND,
    Fields,
    Minutes,
    Seconds,
    Walk,
    at,
    count_within,
    fields_of,
    first_after,
    last_until,
)
from .strategies import (
    RULES,
    change_instants,
    random_ojs_text,
    random_text,
    seeds,
    steps,
    texts,
)
from .tzif import PARTS, zones, zones_to_prove

Dialect = Literal["posix", "ojs"]

SETTLED = timedelta(minutes=2)
"""From the begin of a walk until it has met whatever lasts from before."""

# One of each kind of clock; the slow tests take every zone there is.
SAMPLE = (
    "Africa/Casablanca",
    "Africa/Monrovia",
    "America/New_York",
    "America/Santiago",
    "America/St_Johns",
    "Asia/Gaza",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Pacific/Apia",
    "UTC",
)

both_dialects = pytest.mark.parametrize("dialect", ["posix", "ojs"])


def text_of(dialect: Dialect, random: Random, *, seconds: bool = False) -> str:
    return random_text(random) if dialect == "posix" else random_ojs_text(random, seconds=seconds)


def compare(dialect: Dialect, walk: Walk, zone: ZoneInfo, random: Random, text: str) -> None:
    """Compare all answers about an expression with a walk over the time around a moment."""
    fields, length = fields_of(text), walk.end - walk.begin
    middle = walk.begin + length / 2
    for rules in RULES:
        expected = walk.named(fields, gap=rules[0], fold=rules[1])
        near = SECOND * random.choice((-3600, -60, -1, 0, 1, 30, 60, 1800, 3600))
        probes = [middle + max(-length / 2, min(near, length / 2))]
        probes += [walk.begin + random.random() * length for _ in range(3)]
        for probe in [*probes, *random.sample(expected, min(3, len(expected)))]:
            _compare_answers((dialect, text, zone, probe, rules), walk, expected)
    _compare_losses((dialect, text, zone), walk, fields)


def _compare_answers(
    told: tuple[Dialect, str, ZoneInfo, datetime, tuple[Gap, Fold]],
    walk: Walk,
    expected: list[datetime],
) -> None:
    dialect, text, zone, probe, (gap, fold) = told
    cron = parse(text, dialect)
    following = cron.next_after(probe, zone, gap=gap, fold=fold)
    # Beyond the walk it says nothing, except that nothing may be found within it.
    within = following if following and following <= walk.end else None
    assert within == first_after(expected, probe), told
    latest, greatest = (
        found if found and found >= walk.begin + SETTLED else None
        for found in (
            cron.latest_at_or_before(probe, zone, gap=gap, fold=fold),
            last_until(expected, probe),
        )
    )
    assert latest == greatest, told
    counted = cron.count_between(probe, walk.end, zone, gap=gap, fold=fold)
    assert counted == count_within(expected, probe, walk.end), told


def _compare_losses(told: tuple[Dialect, str, ZoneInfo], walk: Walk, fields: Fields) -> None:
    dialect, text, zone = told
    cron, expected = parse(text, dialect), []
    for _, lost in walk.gaps:
        named = [local for local in lost if fields.name(local)]
        if named and cron.hour_restricted:
            expected.append((named[0], len(named)))
    found = cron.lost_between(walk.begin, walk.end, zone)
    assert [(loss.civil, loss.count) for loss in found] == expected, told


def minutes_around(zone: ZoneInfo, around: datetime, random: Random) -> Minutes:
    before, after = (timedelta(minutes=random.randint(150, 900)) for _ in range(2))
    return Minutes(zone, around - before, around + after)


@pytest.mark.requirement("001 Timely Behavior/3", "002 CRON-09")
@both_dialects
@pytest.mark.parametrize("key", SAMPLE)
@settings(max_examples=2)
@given(seed=seeds)
def test_answers_equal_a_walk_around_changes_of_the_clock(
    dialect: Dialect, key: str, seed: int
) -> None:
    random, zone = Random(seed), ZoneInfo(key)
    around = random.choice(change_instants(key, 1900, 2037) or [datetime(2024, 3, 10, tzinfo=UTC)])
    walk = minutes_around(zone, around, random)
    for _ in range(3):
        compare(dialect, walk, zone, random, text_of(dialect, random))


@pytest.mark.parametrize("key", ["America/New_York", "Africa/Monrovia", "Australia/Lord_Howe"])
@settings(max_examples=1)
@given(seed=seeds)
def test_answers_equal_a_walk_over_seconds(key: str, seed: int) -> None:
    random, zone = Random(seed), ZoneInfo(key)
    around = random.choice(change_instants(key, 1900, 2037))
    walk = Seconds(zone, around - timedelta(minutes=20), around + timedelta(minutes=20))
    for _ in range(3):
        compare("ojs", walk, zone, random, text_of("ojs", random, seconds=True))


@pytest.mark.parametrize(
    ("key", "change"),
    [("Europe/Paris", "2013-10-27T01:00"), ("America/Santiago", "2003-03-09T03:00")],
)
def test_answers_equal_a_walk_where_a_change_lies_next_to_a_block_s_edge(
    key: str, change: str
) -> None:
    edge = (to_second(at(change)) // BLOCK + 1) * BLOCK
    assert edge - to_second(at(change)) < 2 * SECONDS_PER_DAY
    random, zone = Random(key), ZoneInfo(key)
    walk = minutes_around(zone, to_instant(edge), random)
    for _ in range(6):
        compare("posix", walk, zone, random, text_of("posix", random))


@pytest.mark.requirement("001 Timely Behavior/9", "003 Test Methodology/2")
@pytest.mark.slow
@both_dialects
@pytest.mark.parametrize("part", range(PARTS))
def test_answers_equal_a_walk_in_every_zone(dialect: Dialect, part: int) -> None:
    for key in zones_to_prove()[part::PARTS]:
        random, zone = Random(key), ZoneInfo(key)
        instants = change_instants(key, 1850, 2037)
        chosen = random.sample(instants, min(4 if IS_COMPLETE else 1, len(instants)))
        for around in chosen or [datetime(2000, 1, 1, tzinfo=UTC)]:
            walk = minutes_around(zone, around, random)
            for _ in range(3):
                compare(dialect, walk, zone, random, text_of(dialect, random))


def climb(dialect: Dialect, key: str, start: datetime, text: str, count: int) -> None:
    """Check that occurrences rise, and that each is found again from both sides."""
    cron, zone = parse(text, dialect), ZoneInfo(key)
    found = list(steps(cron, zone, start, count))
    # An expression of the ojs dialect may be of years that lie too far apart.
    assert len(found) == count or dialect == "ojs", (text, key)
    assert all(earlier < later for earlier, later in pairwise(found)), (text, key)
    for occurrence in found:
        assert cron.latest_at_or_before(occurrence, zone) == occurrence, (text, key)
        assert cron.next_after(occurrence - SECOND, zone) == occurrence, (text, key)
    for before, occurrence in pairwise(found):
        assert cron.latest_at_or_before(occurrence - SECOND, zone) == before, (text, key)


@both_dialects
@pytest.mark.parametrize("key", SAMPLE)
def test_p06_occurrences_rise_across_changes_of_the_clock(dialect: Dialect, key: str) -> None:
    random, changes = Random(key), change_instants(key, 2010, 2030)
    for change in random.sample(changes, min(3, len(changes))):
        text = text_of(dialect, random, seconds=random.random() < 0.3)
        climb(dialect, key, change - timedelta(days=2), text, 100)


@pytest.mark.requirement("001 Timely Behavior/3")
@pytest.mark.slow
@both_dialects
@pytest.mark.parametrize("part", range(PARTS))
def test_p06_occurrences_rise_across_every_change_in_every_zone(
    dialect: Dialect, part: int
) -> None:
    for key in zones_to_prove()[part::PARTS]:
        random = Random(key)
        for change in change_instants(key, 2016 if IS_COMPLETE else 2026, 2030):
            text = text_of(dialect, random, seconds=random.random() < 0.3)
            count = 200 if IS_COMPLETE else 60
            climb(dialect, key, change - timedelta(days=2), text, count)


@pytest.mark.requirement("001 Cron Language Specification/1", "003 Test Methodology/2")
@settings(max_examples=60)
@given(text=texts, start=st.datetimes(datetime(1950, 1, 1), datetime(2150, 1, 1)))
def test_occurrences_are_those_of_cronsim_where_no_clock_changes(
    text: str, start: datetime
) -> None:
    moment = start.replace(microsecond=0)
    ours = list(steps(parse(text), ZoneInfo("UTC"), moment.replace(tzinfo=UTC), 5))
    theirs = CronSim(text, moment.replace(tzinfo=UTC))
    assert ours == [next(theirs) for _ in range(5)]


@settings(max_examples=40)
@given(text=texts, days=st.integers(0, 4000), length=st.integers(0, 400))
def test_counting_equals_walking_the_occurrences(text: str, days: int, length: int) -> None:
    cron, zone = parse(text), ZoneInfo("America/New_York")
    after = datetime(2015, 1, 1, 5, 30, tzinfo=UTC) + timedelta(days=days)
    found = list(steps(cron, zone, after, length))
    if found:
        assert cron.count_between(after, found[-1], zone) == len(found)
        assert cron.count_between(after, found[-1] - SECOND, zone) == len(found) - 1


def test_counting_backwards_is_nothing() -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    for until in (start, start - timedelta(days=40)):
        assert parse("* * * * *").count_between(start, until, ZoneInfo("UTC")) == 0


# --- other libraries ---

# Where two other libraries answer differently, and why ours does not follow. Each predicate
# gets the upper-case fields of an expression.

Parts = list[str]


def _both_days(fields: Parts) -> bool:
    return fields[-3] != "*" != fields[-1]


def _has_rule(text: str) -> bool:
    return re.search(r"L$|L,|#", text) is not None


def _lone_ranges(fields: Parts) -> bool:
    return any(
        match[1] == match[2] for text in fields for match in re.finditer(r"(\d+)-(\d+)", text)
    )


def _names_every_day(fields: Parts) -> bool:
    cron = parse(" ".join(fields), "ojs")
    return len(cron.days) == 31 or len(cron.weekdays) == 7


CRONSIM_LACKS: dict[str, Callable[[Parts], bool]] = {
    "the working day nearest to a day": lambda fields: "W" in fields[-3].replace("LW", ""),
    "a name before L": lambda fields: re.search(r"[A-Z]{3}L", fields[-1]) is not None,
}
CRONSIM_DIFFERS: dict[str, Callable[[Parts], bool]] = {
    "a day field that begins with a star is joined by AND, as Debian's cron does it; "
    "here it is restricted when its text is not exactly a star": (
        lambda fields: _both_days(fields) and "*" in (fields[-3][0], fields[-1][0])
    ),
    "a step of a range of one goes on to the end of the field; here a range ends where it says": (
        lambda fields: any("/" in text for text in fields) and _lone_ranges(fields)
    ),
}
CRONITER_LACKS: dict[str, Callable[[Parts], bool]] = {
    "the last working day": lambda fields: "LW" in fields[-3],
    "a working day in a list": lambda fields: "W" in fields[-3] and "," in fields[-3],
    "rules beside plain weekdays": lambda fields: (
        "," in fields[-1] and any(map(_has_rule, fields[-1].split(",")))
    ),
}
CRONITER_DIFFERS: dict[str, Callable[[Parts], bool]] = {
    "a rule in either day field joins the two by AND; two restricted day fields mean OR": (
        lambda fields: _both_days(fields) and (_has_rule(fields[-1]) or "W" in fields[-3])
    ),
    "a range of one is the whole field; here it is its one value": _lone_ranges,
    "a working day beyond a month is one of its last days; here such a month has none": (
        lambda fields: re.search("29W|30W|31W", fields[-3]) is not None
    ),
    "a list that names every day is no restriction; here one is when its text is not a star": (
        lambda fields: _both_days(fields) and _names_every_day(fields)
    ),
}


def _ask_cronsim(fields: Parts, local: datetime) -> datetime | None:
    try:
        return next(CronSim(" ".join(fields), local), None)
    except CronSimError:
        return None


def _ask_croniter(fields: Parts, local: datetime) -> datetime | None:
    names = {
        name: str(number)
        for number, name in enumerate(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"])
    }
    weekday = re.sub("[A-Z]{3}", lambda name: names[name[0]], fields[-1])
    text = " ".join([*fields[:-1], re.sub(r"(\d)L", r"L\1", weekday).replace("L7", "L0")])
    try:
        found: datetime = croniter(text, local, second_at_beginning=True).get_next(datetime)
    except CroniterBadDateError:
        return None
    return found


def calm(zone: ZoneInfo, *moments: datetime) -> bool:
    """Tell whether no clock changes within two days of some moments."""
    days = timedelta(days=2)
    return not any(any(next_transitions(zone, at - days, at + days)) for at in moments)


ORACLES = [
    pytest.param(_ask_cronsim, CRONSIM_LACKS, CRONSIM_DIFFERS, id="cronsim"),
    pytest.param(_ask_croniter, CRONITER_LACKS, CRONITER_DIFFERS, id="croniter"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("ask", "lacks", "differs"), ORACLES)
def test_another_library_answers_the_same_or_for_a_known_reason_not(
    ask: Callable[[Parts, datetime], datetime | None],
    lacks: dict[str, Callable[[Parts], bool]],
    differs: dict[str, Callable[[Parts], bool]],
) -> None:
    random, told = Random(5), Counter[str]()
    comparisons = 10_000 if IS_COMPLETE else 2_000
    places = [ZoneInfo(key) for key in random.sample(zones(), 25)]
    while told.total() < comparisons:
        text, zone = random_ojs_text(random, seconds=random.random() < 0.3), random.choice(places)
        local = datetime(2015, 1, 1) + SECOND * random.randrange(20 * 365 * 86_400)
        instant = local.replace(tzinfo=zone).astimezone(UTC)
        ours, fields = parse(text, "ojs").next_after(instant, zone), text.upper().split()
        if ours is None or not calm(zone, instant, ours):
            continue
        reason = next((why for why, holds in lacks.items() if holds(fields)), None)
        if reason is None:
            theirs = ask(fields, local)
            there = None if theirs is None else theirs.replace(tzinfo=zone).astimezone(UTC)
            if there is not None and not calm(zone, there):
                continue
            reason = "the same"
            if there != ours:
                reason = next((why for why, holds in differs.items() if holds(fields)), None)
                assert reason is not None, (text, zone, instant, ours, there)
        told[reason] += 1
    if IS_COMPLETE:
        # One of the reasons holds for one expression in five thousand.
        assert set(told) == {"the same", *lacks, *differs}
    assert told["the same"] > 0.6 * told.total(), told
