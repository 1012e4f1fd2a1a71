"""Secrets among arguments and results are masked by name, and the project says which names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.views.debug import (
    SafeExceptionReporterFilter,
    get_default_exception_reporter_filter,
)

from django_declarative_cron.store.sentences import masked

HERE = "tests.store.test_sentences"
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
