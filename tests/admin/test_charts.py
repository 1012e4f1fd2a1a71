"""Pictures from values: what is drawn where, how much of it, and what stands beside it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

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


def test_a_run_is_as_long_as_it_took() -> None:
    picture = charts.lane(DAY, [Bar(at(6), at(7.9), "failed")], [], [], NOW, "a")
    assert blocks(picture, "bar-failed") == [("360", "2", "116", "20")]


def test_a_short_run_is_seen_and_the_worse_of_two_in_one_place() -> None:
    bars = [Bar(at(1), at(1), "failed"), Bar(at(1), at(1), "succeeded")]
    picture = charts.lane(DAY, bars, [], [], NOW, "a")
    assert len(blocks(picture, "bar-failed")) == 1
    assert blocks(picture, "bar-succeeded") == []


def test_outcomes_differ_in_height_and_not_in_colour_alone() -> None:
    kinds = ("failed", "succeeded", "missed")
    bars = [Bar(at(hour), at(hour), kind) for hour, kind in enumerate(kinds)]
    picture = charts.lane(DAY, bars, [], [], NOW, "a")
    heights = [blocks(picture, f"bar-{k}")[0][3] for k in kinds]
    assert heights == ["20", "14", "6"]


def test_what_lies_outside_is_not_drawn_and_what_reaches_in_is() -> None:
    bars = [Bar(at(-5), at(-4), "failed"), Bar(at(-1), at(1), "succeeded")]
    picture = charts.lane(DAY, bars, [at(30)], [Mark(at(40), "x")], NOW, "a")
    assert blocks(picture, "bar-failed") == []
    assert [(x, width) for x, _, width, _ in blocks(picture, "bar-succeeded")] == [("0", "64")]
    assert blocks(picture, "planned") == parts(picture, "clock-change") == []


def test_now_and_changes_of_the_clock_are_lines() -> None:
    picture = charts.lane(DAY, [], [], [Mark(at(1), "Europe/Berlin: clocks go back")], NOW, "a")
    assert [line["x1"] for line in parts(picture, "now")] == ["1080"]
    assert [line["x1"] for line in parts(picture, "clock-change")] == ["60"]
    assert "<title>Europe/Berlin: clocks go back</title>" in picture


def test_a_lane_is_bounded_however_much_took_place() -> None:
    bars = [
        Bar(at(n / 3600), at(n / 3600), "succeeded" if n % 2 else "failed") for n in range(20_000)
    ]
    planned = [at(18 + n / 3600) for n in range(20_000)]
    picture = charts.lane(DAY, bars, planned, [], NOW, "a")
    drawn = [*blocks(picture, "bar-failed"), *blocks(picture, "bar-succeeded")]
    assert 0 < len(drawn) <= charts.LANE_WIDTH // 4
    assert 0 < len(blocks(picture, "planned")) <= charts.LANE_WIDTH // 4
    assert picture.count("<") < 20


def test_what_people_wrote_is_escaped() -> None:
    picture = charts.lane(DAY, [], [], [Mark(at(1), "</title><script>")], NOW, '"><script>')
    assert "<script>" not in picture


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
        charts.lane(DAY, [Bar(at(1), at(2), "failed")], [at(20)], [], NOW, "a"),
        charts.columns([charts.Column(1, "load")], "a"),
        charts.strip(["failed"], "a"),
    ]
    assert not re.search(r"\sstyle=|\son\w+=|<style|<script", "".join(pictures))


def test_coordinates_are_written_without_a_language() -> None:
    assert [charts.number(value) for value in (1440, 0.5, 1234.5678, -0.0)] == [
        "1440",
        "0.5",
        "1234.57",
        "0",
    ]


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
