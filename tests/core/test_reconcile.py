"""What is planned of a set and of rows: each declaration has one place in it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from django_declarative_cron import conf
from django_declarative_cron.core.declarations.declaration import Declaration
from django_declarative_cron.core.reconcile import Row, is_older, plan

FIVE = timedelta(minutes=5)


def work() -> None:
    """Do nothing."""


def declared(name: str, cron: str = "0 7 * * *") -> Declaration:
    return conf.declarations([(name, cron, work, FIVE)])[0]


def row_of(declaration: Declaration) -> Row:
    return (declaration.name, *declaration.columns)


def test_each_declaration_has_one_place_in_the_plan() -> None:
    new, same, moved, described = map(declared, ("new", "same", "moved", "described"))
    posted = replace(declared("posted"), origin="http")
    rows = map(
        row_of,
        (
            same,
            declared("moved", "0 8 * * *"),
            replace(described, description="x"),
            declared("gone"),
        ),
    )
    found = plan([new, same, moved, described], [*rows, row_of(posted)])
    assert found.new == (new,)
    assert found.unchanged == (same,)
    assert found.updated == (described,)
    assert [(each.declaration, each.stored.cron) for each in found.overridden] == [
        (moved, "0 8 * * *")
    ]
    # What was posted is nobody's to remove but who posted it.
    assert found.orphaned == ("gone",)
    assert found.preserved == (described, same)


def test_what_settings_declare_takes_the_place_of_what_was_posted_as_the_same() -> None:
    mine = declared("a")
    [override] = plan([mine], [row_of(replace(mine, origin="http"))]).overridden
    assert override.changes() == {"origin": ("http", "settings")}


def test_declarations_are_equal_that_say_the_same() -> None:
    one = declared("a")
    assert one == declared("a")
    assert hash(one) == hash(declared("a"))
    # Another spacing is another text, though it means the same.
    assert one != declared("a", "0  7 * * *")
    assert one != replace(one, description="x")


# --- which of two releases is the older one ---


@pytest.mark.parametrize(
    ("release", "other", "older"),
    [
        ("1.9", "1.10", True),
        ("1.10", "1.9", False),
        ("v1.2.3", "1.2.4", True),
        ("1.2", "1.2.0", False),
        ("1.2", "1.2.1", True),
        ("2026-11-03", "2026-11-28", True),
        ("20261128", "20261103", False),
        ("7", "7", False),
        ("007", "8", True),
        ("1.0rc1", "1.0", None),
        ("0a1b2c3", "1234567", None),
        ("main", "1.0", None),
        ("", "1.0", None),
        ("1.", "1.0", None),
        ("١.٢", "1.3", None),
    ],
)
def test_releases_of_numbers_are_compared_by_them(
    release: str, other: str, older: bool | None
) -> None:
    assert is_older(release, other) is older
