"""Fields of foreign grammars: the same minutes as two other implementations name."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from croniter import croniter
from cronsim import CronSim

from django_declarative_cron.cron import CronExpression, parse
from django_declarative_cron.importers import apscheduler, celery_beat, cron_fields
from django_declarative_cron.importers.result import ImportedTask, UntranslatableError

from .stand_ins import CronTrigger

START = datetime(2027, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def some_field(chance: random.Random, low: int, high: int) -> str:
    first, last = sorted(chance.sample(range(low, high + 1), 2))
    values = ",".join(str(chance.randint(low, high)) for _ in range(3))
    step = chance.randint(1, high - low)
    forms = ("*", str(first), f"{first}-{last}", f"*/{step}", values, f"{first}-{last}/2")
    return chance.choice(forms)


def some_cron(chance: random.Random) -> str:
    bounds = ((0, 59), (0, 23), (1, 28), (1, 12), (0, 7))
    return " ".join(some_field(chance, *each) for each in bounds)


def following(expression: CronExpression, number: int) -> list[datetime]:
    found, at = [], START
    for _ in range(number):
        upcoming = expression.next_after(at, UTC)
        assert upcoming is not None
        found.append(at := upcoming)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_what_croniter_reads_means_the_same(seed: int) -> None:
    text = some_cron(random.Random(seed))
    ours = cron_fields.either_day(ImportedTask("x"), text, star_is_and=False)
    theirs = croniter(text, START)
    expected = [theirs.get_next(datetime) for _ in range(5)]
    assert following(parse(ours, "ojs"), 5) == expected, (text, ours)


@pytest.mark.parametrize("seed", range(40))
def test_what_the_cron_of_most_systems_reads_means_the_same(seed: int) -> None:
    text = some_cron(random.Random(1000 + seed))
    theirs, task = CronSim(text, START), ImportedTask("x")
    try:
        ours = cron_fields.either_day(task, text, star_is_and=True)
    except UntranslatableError as error:
        assert "both day fields had to match" in str(error)
        return
    expected = [next(theirs) for _ in range(5)]
    assert following(parse(ours, "ojs"), 5) == expected, (text, ours, task)


DAYS = ("*", "1-7", "8-14", "15-21", "29-31", "1-14", "13")
WEEKDAYS = ("*", "mon", "mon-fri", "0", "6", "fri-mon", "*/2")


@pytest.mark.parametrize("day", DAYS)
@pytest.mark.parametrize("weekday", WEEKDAYS)
def test_both_days_match_or_there_is_no_entry(day: str, weekday: str) -> None:
    try:
        expression = parse(celery_beat.cron_of(("30", "22-2", day, "*", weekday)), "ojs")
    except UntranslatableError:
        assert (day, weekday) in {("13", each) for each in WEEKDAYS[1:]}
        return
    days = cron_fields.DAY.read(day)
    named = cron_fields.Grammar(0, 6, cron_fields.SUNDAY_FIRST, wraps=True).read(weekday)
    for number in range(365):
        at = START + timedelta(days=number, hours=23, minutes=30)
        expected = at.day in days and at.isoweekday() % 7 in named
        assert expression.matches(at.replace(tzinfo=None)) == expected, (at, str(expression))


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ({0, 15, 30, 45}, "*/15"),
        (set(range(60)), "*"),
        ({1, 2, 3, 7}, "1-3,7"),
        ({5, 10, 15}, "5-15/5"),
        ({0, 30}, "0,30"),
    ],
)
def test_sets_are_written_shortly(values: set[int], written: str) -> None:
    assert cron_fields.field(frozenset(values), cron_fields.MINUTE) == written


@pytest.mark.parametrize("text", ["60", "5-1", "*/0", "x", "1-", "", "1,,2", "-1", "1e2"])
def test_what_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(UntranslatableError):
        cron_fields.MINUTE.read(text)


def test_weekdays_of_apscheduler_begin_with_monday() -> None:
    """Also in its own ``from_crontab``, where the author meant Sunday."""
    for weekday, expected in (
        ("0", "MON"),
        ("6", "SUN"),
        ("mon-fri", "MON-FRI"),
        ("5-6", "SAT,SUN"),
    ):
        trigger = CronTrigger(second="0", minute="0", hour="9", day_of_week=weekday)
        job = SimpleNamespace(id="a", func_ref="m:f", args=(), kwargs={}, trigger=trigger)
        task = apscheduler.convert(job, {}, "UTC")
        assert task.entry["cron"] == f"0 9 * * {expected}"


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("0 0 L * *", "0 0 L * *"),
        ("0 9 * * 1#1", "0 9 * * 1#1"),
        ("0 9 * * L5", "0 9 * * 5L"),
        ("@DAILY", "@daily"),
        ("0 0 13 * 0-7", "0 0 * * *"),
        ("0 0 1-7 * mon", "0 0 1-7 * MON"),
    ],
)
def test_what_has_other_words_here(text: str, ours: str) -> None:
    assert cron_fields.either_day(ImportedTask("x"), text, star_is_and=False) == ours
    parse(ours, "ojs")


def test_chance_is_not_written_as_certainty() -> None:
    with pytest.raises(UntranslatableError, match="leaves a value to chance"):
        cron_fields.either_day(ImportedTask("x"), "0~59 * * * *", star_is_and=True)


@pytest.mark.parametrize(
    ("length", "text"), [(timedelta(hours=2), "@every 2h"), (timedelta(days=14), "@every 336h")]
)
def test_intervals(length: timedelta, text: str) -> None:
    assert cron_fields.every(length) == text
    assert parse(text, "ojs").every == length


@pytest.mark.parametrize("length", [timedelta(0), timedelta(microseconds=1_000_001)])
def test_intervals_that_are_too_fine(length: timedelta) -> None:
    with pytest.raises(UntranslatableError, match="too fine"):
        cron_fields.every(length)
