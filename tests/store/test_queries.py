"""What is read for people: tasks by their tags, and values without their secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.views.debug import (
    SafeExceptionReporterFilter,
    get_default_exception_reporter_filter,
)

from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.store.queries import tagged
from django_declarative_cron.store.sentences import masked
from django_declarative_cron.testing import Simulation

TAGS = {
    "a": ["money"],
    "b": ["Money", "mail"],
    "c": ["grün", 'say "mail"'],
    "d": ["mon", 'a"b', "x,"],
    "e": [","],
    "f": ["100%", "back\\slash"],
}


@pytest.mark.parametrize(
    ("tag", "names"),
    [
        ("money", ["a"]),
        ("Money", ["b"]),
        ("mail", ["b"]),
        ("mon", ["d"]),
        ("grün", ["c"]),
        ('say "mail"', ["c"]),
        ("100%", ["f"]),
        ("back\\slash", ["f"]),
        ("b", []),
        (",", ["e"]),
        ("", []),
        ("1", []),
    ],
)
def test_a_tag_is_found_whole_and_letter_for_letter(db: None, tag: str, names: list[str]) -> None:
    Simulation(start="2026-01-01T00:00:00Z").initialize(
        [
            {"name": name, "cron": "@yearly", "callback": "os.getpid", "tags": tags}
            for name, tags in TAGS.items()
        ]
    )
    found = tagged(ScheduledTask.objects.order_by("name"), tag)
    assert [task.name for task in found] == names


# --- secrets ---


HERE = "tests.store.test_queries"
HIDDEN = SafeExceptionReporterFilter.cleansed_substitute
GIVEN = {"token": "a", "iban": "b", "deep": [{"api_key": "c", "n": 1}, "d"], "password": {"e": 1}}


class HidesMore(SafeExceptionReporterFilter):
    """Hide account numbers only."""

    hidden_settings = re.compile("IBAN", flags=re.IGNORECASE)


class OfAnyKind:
    """Be a filter that knows nothing of settings."""


@pytest.fixture(autouse=True)
def _forget_the_filter() -> Iterator[None]:
    get_default_exception_reporter_filter.cache_clear()
    yield
    get_default_exception_reporter_filter.cache_clear()


def test_what_looks_like_a_secret_is_masked_at_any_depth() -> None:
    assert masked(GIVEN) == {
        "token": HIDDEN,
        "iban": "b",
        "deep": [{"api_key": HIDDEN, "n": 1}, "d"],
        "password": HIDDEN,
    }
    assert masked("token") == "token"


def test_the_project_says_which_names_are_secret(settings: Any) -> None:
    settings.DEFAULT_EXCEPTION_REPORTER_FILTER = f"{HERE}.HidesMore"
    assert masked({"token": "a", "iban": "b"}) == {"token": "a", "iban": HIDDEN}


def test_a_filter_of_another_kind_shows_no_secret(settings: Any) -> None:
    settings.DEFAULT_EXCEPTION_REPORTER_FILTER = f"{HERE}.OfAnyKind"
    assert masked({"token": "a"}) == {"token": HIDDEN}
