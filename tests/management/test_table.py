"""Tables."""

from __future__ import annotations

import pytest

from django_declarative_cron.management.cli.table import Cell, columns, table, wrap


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
