"""Charts from values, and colours that can be read on every ground of the admin (WCAG AA)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.contrib import admin

import django_declarative_cron
from django_declarative_cron.admin import charts
from django_declarative_cron.admin.charts import Bar, Mark, Window
from django_declarative_cron.core.schedule import Schedule, load
from django_declarative_cron.cron import parse, validate_zone

START = datetime(2026, 11, 28, 0, 0, tzinfo=UTC)
DAY = Window(START, START + timedelta(hours=24))
NOW = START + timedelta(hours=18)


def parts(picture: str, kind: str) -> list[dict[str, str]]:
    found = re.findall(rf'<(?:rect|line) class="(?:[^"]* )?ddc-{kind}"([^>]*)>', picture)
    return [dict(re.findall(r'([\w-]+)="([^"]*)"', each)) for each in found]


def blocks(picture: str, kind: str) -> list[tuple[str, ...]]:
    """Give x, y, width and height of what is drawn as one path."""
    outlines = re.findall(rf'<path class="(?:[^"]* )?ddc-{kind}" d="([^"]*)"/>', picture)
    block = r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-\3z"
    return [place for outline in outlines for place in re.findall(block, outline)]


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def lane(
    *bars: Bar, planned: Sequence[datetime] = (), changes: Sequence[Mark] = (), label: str = "a"
) -> str:
    return charts.lane(DAY, bars, planned, changes, NOW, label)


def test_a_run_is_as_long_as_it_took() -> None:
    picture = lane(Bar(at(6), at(7.9), "failed"))
    assert blocks(picture, "bar-failed") == [("360", "2", "116", "20")]


def test_a_short_run_is_seen_and_the_worse_of_two_in_one_place() -> None:
    picture = lane(Bar(at(1), at(1), "failed"), Bar(at(1), at(1), "succeeded"))
    assert len(blocks(picture, "bar-failed")) == 1
    assert blocks(picture, "bar-succeeded") == []


def test_outcomes_differ_in_height_and_not_in_colour_alone() -> None:
    kinds = ("failed", "succeeded", "missed")
    picture = lane(*(Bar(at(hour), at(hour), kind) for hour, kind in enumerate(kinds)))
    heights = [blocks(picture, f"bar-{k}")[0][3] for k in kinds]
    assert heights == ["20", "14", "6"]


def test_what_lies_outside_is_not_drawn_and_what_reaches_in_is() -> None:
    bars = [Bar(at(-5), at(-4), "failed"), Bar(at(-1), at(1), "succeeded")]
    picture = lane(*bars, planned=[at(30)], changes=[Mark(at(40), "x")])
    assert blocks(picture, "bar-failed") == []
    assert [(x, width) for x, _, width, _ in blocks(picture, "bar-succeeded")] == [("0", "64")]
    assert blocks(picture, "planned") == parts(picture, "clock-change") == []


def test_now_and_changes_of_the_clock_are_lines() -> None:
    picture = lane(changes=[Mark(at(1), "Europe/Berlin: clocks go back")])
    assert [line["x1"] for line in parts(picture, "now")] == ["1080"]
    assert [line["x1"] for line in parts(picture, "clock-change")] == ["60"]
    assert "<title>Europe/Berlin: clocks go back</title>" in picture


def test_a_lane_is_bounded_however_much_took_place() -> None:
    kinds = ("failed", "succeeded")
    bars = [Bar(at(n / 3600), at(n / 3600), kinds[n % 2]) for n in range(20_000)]
    picture = lane(*bars, planned=[at(18 + n / 3600) for n in range(20_000)])
    drawn = [*blocks(picture, "bar-failed"), *blocks(picture, "bar-succeeded")]
    assert 0 < len(drawn) <= charts.LANE_WIDTH // 4
    assert 0 < len(blocks(picture, "planned")) <= charts.LANE_WIDTH // 4
    assert picture.count("<") < 20


def test_what_people_wrote_is_escaped() -> None:
    assert "<script>" not in lane(changes=[Mark(at(1), "</title><script>")], label='"><script>')


@pytest.mark.parametrize("kinds", [[], ["failed"], ["succeeded"] * 50])
def test_a_strip_has_at_most_twenty_bars_the_newest_at_the_right(kinds: list[str]) -> None:
    picture = charts.strip(kinds, "a")
    bars = [place for kind in set(kinds) for place in blocks(picture, f"bar-{kind}")]
    assert len(bars) == min(len(kinds), 20)
    assert not bars or bars[-1][0] == "95"


def test_columns_are_as_high_as_their_values() -> None:
    columns = [charts.Column(1, "succeeded"), charts.Column(2, "failed", "two")]
    picture = charts.columns(columns, "a")
    assert parts(picture, "bar-failed")[0]["height"] == "54"
    assert parts(picture, "bar-succeeded")[0]["height"] == "27"
    assert "<title>two</title>" in picture


def test_nothing_in_a_picture_is_refused_by_a_strict_policy() -> None:
    pictures = [
        lane(Bar(at(1), at(2), "failed"), planned=[at(20)]),
        charts.columns([charts.Column(1, "load")], "a"),
        charts.strip(["failed"], "a"),
    ]
    assert not re.search(r"\sstyle=|\son\w+=|<style|<script", "".join(pictures))


def test_coordinates_are_written_without_a_language() -> None:
    found = [charts.number(value) for value in (1440, 0.5, 1234.5678, -0.0)]
    assert found == ["1440", "0.5", "1234.57", "0"]


def test_the_load_counts_the_minutes_that_follow() -> None:
    berlin = validate_zone("Europe/Berlin")
    schedules = [
        (Schedule(parse("* * * * *"), berlin), 1),
        (Schedule(parse("30 19 * * *"), berlin), 4),
        (Schedule(parse("*/10 * * * * *", "ojs"), berlin), 1),
    ]
    found = load(schedules, NOW + timedelta(seconds=20))
    assert len(found) == 60
    assert found[29] == 6
    assert sum(found) == 60 + 4 + 60


def test_the_load_leaves_out_what_is_taken_out_of_one_of_two_like_schedules() -> None:
    plain = Schedule(parse("30 * * * *"), validate_zone("UTC"))
    skipping = plain.omitting(NOW.replace(minute=30, second=0))
    assert skipping == plain
    found = load([(plain, 2), (skipping, 1)], NOW)
    assert (found[29], sum(found)) == (2, 2)


OURS = Path(django_declarative_cron.__file__).parent / "static/django_declarative_cron/admin.css"
THEIRS = Path(admin.__file__).parent / "static/admin/css"
TOKENS = ("good", "bad", "warn", "busy")
LIGHT, DARK = 0, 1


def declared(css: str) -> dict[str, str]:
    """Give the first value of each custom property."""
    found: dict[str, str] = {}
    for name, value in re.findall(r"--([\w-]+):\s*(#[0-9a-fA-F]{3,6})\b", css):
        found.setdefault(name, value)
    return found


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def grounds(mode: int) -> list[str]:
    """Return the colours behind words: every other row is darkened, and a chosen row is lit."""
    found = theirs(mode)
    return [found[name] for name in ("body-bg", "darkened-bg", "selected-row")]


def theirs(mode: int) -> dict[str, str]:
    name = "dark_mode.css" if mode == DARK else "base.css"
    return declared((THEIRS / name).read_text(encoding="utf-8"))


def ours(mode: int) -> list[dict[str, str]]:
    """Return our colours, for the dark once for each way to ask for it."""
    blocks = re.findall(r"\{([^{}]*--ddc-good:[^{}]*)\}", OURS.read_text(encoding="utf-8"))
    light, *dark = [declared(block) for block in blocks]
    return dark if mode == DARK else [light]


@pytest.mark.parametrize("mode", [LIGHT, DARK])
def test_words_in_our_colours_and_quiet_ones_are_read_on_every_ground(mode: int) -> None:
    words = [each[f"ddc-{token}"] for each in ours(mode) for token in TOKENS]
    for colour in [*words, theirs(mode)["body-quiet-color"]]:
        for ground in grounds(mode):
            assert contrast(colour, ground) >= 4.5, (colour, ground)


def test_every_way_to_ask_for_the_dark_gives_the_same_colours() -> None:
    first, *others = ours(DARK)
    assert len(others) == 2
    assert all(each == first for each in others)


def test_the_ratio_is_that_of_the_guidelines() -> None:
    assert contrast("#fff", "#000") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.005)
