"""Next is the least and previous the greatest, against a walk over every minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from django_declarative_cron.cron import Fold, Gap, parse
from django_declarative_cron.cron.timeline import (
    BLOCK,
    SECONDS_PER_DAY,
    to_instant,
    to_second,
)

from ..effort import IS_COMPLETE
from .oracle import Minutes, at, count_within, fields_of, first_after, last_until
from .strategies import RULES, change_instants, random_text, seeds, steps, texts
from .tzif import PARTS, zones_to_prove

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


def compare_with_walk(zone: ZoneInfo, around: datetime, random: Random, expressions: int) -> None:
    """Compare all answers about random expressions with a walk over the days around a moment."""
    before, after = (timedelta(minutes=random.randint(150, 900)) for _ in range(2))
    walk = Minutes(zone, around - before, around + after)
    for _ in range(expressions):
        text = random_text(random)
        for gap, fold in RULES:
            expected = walk.occurrences(text, gap=gap, fold=fold)
            probes = _probes(walk, around, random)
            probes += random.sample(expected, min(3, len(expected)))
            for probe in probes:
                _compare(text, zone, walk, expected, probe, (gap, fold))
        _compare_losses(text, zone, walk)


def _probes(walk: Minutes, around: datetime, random: Random) -> list[datetime]:
    near = [around + timedelta(seconds=random.choice((-3600, -60, -1, 0, 1, 30, 60, 1800, 3600)))]
    length = (walk.end - walk.begin).total_seconds()
    far = [walk.begin + timedelta(seconds=random.uniform(0, length)) for _ in range(3)]
    return near + far


def _compare(
    text: str,
    zone: ZoneInfo,
    walk: Minutes,
    expected: list[datetime],
    probe: datetime,
    rules: tuple[Gap, Fold],
) -> None:
    cron, (gap, fold) = parse(text), rules
    following = cron.next_after(probe, zone, gap=gap, fold=fold)
    latest = cron.latest_at_or_before(probe, zone, gap=gap, fold=fold)
    counted = cron.count_between(probe, walk.end, zone, gap=gap, fold=fold)
    told = (text, zone, probe, rules)
    # Beyond the walk it says nothing, except that nothing may be found within it.
    within_next = following if following and following <= walk.end else None
    within_latest = latest if latest and latest >= walk.begin + timedelta(minutes=2) else None
    least, greatest = first_after(expected, probe), last_until(expected, probe)
    assert within_next == least, told
    if greatest is None or greatest >= walk.begin + timedelta(minutes=2):
        assert within_latest == greatest, told
    assert counted == count_within(expected, probe, walk.end), told


def _compare_losses(text: str, zone: ZoneInfo, walk: Minutes) -> None:
    cron, fields, expected = parse(text), fields_of(text), []
    for _, lost in walk.gaps:
        named = [local for local in lost if fields.name(local)]
        if named and cron.hour_restricted:
            expected.append((named[0], len(named)))
    found = cron.lost_between(walk.begin, walk.end, zone)
    assert [(loss.civil, loss.count) for loss in found] == expected, (text, zone)


@pytest.mark.requirement("001 Timely Behavior/3")
@pytest.mark.parametrize("key", SAMPLE)
@settings(max_examples=2)
@given(seed=seeds)
def test_answers_equal_a_walk_around_changes_of_the_clock(key: str, seed: int) -> None:
    random = Random(seed)
    around = random.choice(change_instants(key, 1900, 2037) or [datetime(2024, 3, 10, tzinfo=UTC)])
    compare_with_walk(ZoneInfo(key), around, random, expressions=3)


@pytest.mark.parametrize(
    ("key", "change"),
    [("Europe/Paris", "2013-10-27T01:00"), ("America/Santiago", "2003-03-09T03:00")],
)
def test_answers_equal_a_walk_where_a_change_lies_next_to_a_block_s_edge(
    key: str, change: str
) -> None:
    edge = (to_second(at(change)) // BLOCK + 1) * BLOCK
    assert edge - to_second(at(change)) < 2 * SECONDS_PER_DAY
    compare_with_walk(ZoneInfo(key), to_instant(edge), Random(key), expressions=6)


@pytest.mark.requirement("001 Timely Behavior/9", "003 Test Methodology/2")
@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_answers_equal_a_walk_in_every_zone(part: int) -> None:
    for key in zones_to_prove()[part::PARTS]:
        random = Random(key)
        instants = change_instants(key, 1850, 2037)
        chosen = random.sample(instants, min(4 if IS_COMPLETE else 1, len(instants))) or [
            datetime(2000, 1, 1, tzinfo=UTC)
        ]
        for around in chosen:
            compare_with_walk(ZoneInfo(key), around, random, expressions=3)


def climb(key: str, start: datetime, text: str, count: int) -> None:
    """Check that occurrences rise, and that each is found again from behind."""
    cron, zone = parse(text), ZoneInfo(key)
    found = list(steps(cron, zone, start, count))
    assert len(found) == count
    assert all(earlier < later for earlier, later in pairwise(found)), (text, key)
    second = timedelta(seconds=1)
    for occurrence in found:
        assert cron.latest_at_or_before(occurrence, zone) == occurrence, (text, key)
        assert cron.next_after(occurrence - second, zone) == occurrence, (text, key)


@pytest.mark.parametrize("key", SAMPLE)
def test_p06_occurrences_rise_across_changes_of_the_clock(key: str) -> None:
    random = Random(key)
    for change in random.sample(change_instants(key, 2010, 2030), 2) if key in CHANGING else ():
        climb(key, change - timedelta(days=2), random_text(random), 100)


CHANGING = frozenset(key for key in SAMPLE if len(change_instants(key, 2010, 2030)) >= 2)


@pytest.mark.requirement("001 Timely Behavior/3")
@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_p06_occurrences_rise_across_every_change_in_every_zone(part: int) -> None:
    for key in zones_to_prove()[part::PARTS]:
        random = Random(key)
        for change in change_instants(key, 2016 if IS_COMPLETE else 2026, 2030):
            climb(key, change - timedelta(days=2), random_text(random), 200 if IS_COMPLETE else 60)


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
        assert cron.count_between(after, found[-1] - timedelta(seconds=1), zone) == len(found) - 1


def test_counting_backwards_is_nothing() -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    assert parse("* * * * *").count_between(start, start, ZoneInfo("UTC")) == 0
    earlier = start - timedelta(days=40)
    assert parse("* * * * *").count_between(start, earlier, ZoneInfo("UTC")) == 0
