"""Tables and words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.management.cli import words
from django_declarative_cron.management.cli.table import Cell, columns, table, wrap

NOON = datetime(2024, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 5, [""]),
        ("a b", 5, ["a b"]),
        ("one two three", 7, ["one two", "three"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("ab cdefgh", 4, ["ab", "cdef", "gh"]),
        ("a  b", 5, ["a  b"]),
        ("名前名前", 4, ["名前", "名前"]),
        ("e\u0301e\u0301e\u0301", 2, ["e\u0301e\u0301", "e\u0301"]),
    ],
)
def test_texts_are_wrapped_and_never_cut(text: str, width: int, lines: list[str]) -> None:
    assert wrap(text, width) == lines
    assert all(columns(line) <= width for line in lines)


def test_the_widest_column_gives_way() -> None:
    row = [Cell(("short",)), Cell(("a rather long text",)), Cell(("1", "2", "3"))]
    assert table([row], 20) == [
        "short  a rather    1",
        "       long text   2",
        "                   3",
    ]


def test_wide_signs_keep_columns_straight() -> None:
    rows = [[Cell(("名前",)), Cell(("x",))], [Cell(("abcd",)), Cell(("y",))]]
    assert table(rows, 80) == ["名前  x", "abcd  y"]


def test_colour_takes_no_columns() -> None:
    rows = [[Cell(("a",), lambda text: f"<{text}>"), Cell(("x",))], [Cell(("abc",)), Cell(("y",))]]
    assert table(rows, 80) == ["<a>    x", "abc  y"]


def test_no_rows_are_no_lines() -> None:
    assert table([], 80) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "now"),
        (0.4, "now"),
        (59, "in 59 s"),
        (60, "in 1 min"),
        (3599, "in 59 min"),
        (3600, "in 1 h"),
        (86_400, "in 1 d"),
        (86_400 * 400, "in 400 d"),
        (-1, "1 s ago"),
        (-86_399, "23 h ago"),
    ],
)
def test_distances_are_said_in_their_largest_unit(seconds: float, text: str) -> None:
    assert words.relative(NOON + timedelta(seconds=seconds), NOON) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0004, "0 ms"), (0.25, "250 ms"), (1.26, "1.3 s"), (59.9, "59.9 s"), (3725, "1:02:05")],
)
def test_durations(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


def test_instants() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert words.local(NOON, berlin) == "2024-07-01 14:00 CEST"
    assert words.civil(NOON + timedelta(seconds=5), UTC) == "2024-07-01 12:00:05"
    assert words.iso(NOON.astimezone(berlin)) == "2024-07-01T12:00:00.000Z"
    assert words.iso(NOON + timedelta(microseconds=1999)) == "2024-07-01T12:00:00.001Z"
    assert words.iso(None) is None


def test_counts() -> None:
    assert [words.count(n, "task") for n in (0, 1, 1234)] == ["0 tasks", "1 task", "1,234 tasks"]
