"""Schedules in plain words."""

from __future__ import annotations

from typing import Any

import pytest

from django_declarative_cron.cron import describe, parse, wording


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("* * * * *", "Every minute"),
        ("0-59 0-23 * * *", "Every minute"),
        ("0 7 * * 0", "At 07:00, only on Sunday"),
        ("30 14 * * 1-5", "At 14:30, Monday through Friday"),
        ("30 14 * * 1,2,3,4,5", "At 14:30, Monday through Friday"),
        ("007 * * * *", "At 7 minutes past the hour"),
        ("0 9 * 4,7,10 *", "At 09:00, only in April, July, and October"),
        ("0 0-23 * * *", "Every hour"),
        (
            "0 5 1-7 * 1",
            "At 05:00, between day 1 and 7 of the month; or at 05:00, only on Monday",
        ),
        (
            "0 0 1 2 1-5",
            "At 00:00, on day 1 of the month, only in February;"
            " or at 00:00, Monday through Friday, only in February",
        ),
        ("0 0 1-31 * 1", "At 00:00"),
    ],
)
def test_words(text: str, words: str) -> None:
    assert describe(parse(text)) == words


def test_words_in_another_language() -> None:
    cron = parse("30 2 * * 1")
    assert describe(cron, "de") == describe(cron, "de-at") == "Um 02:30, nur am Monday"
    assert describe(cron, "de", {"Monday": "Montag"}) == "Um 02:30, nur am Montag"
    assert describe(parse("0 0 1 * 1"), "de") == (
        "Um 00:00, am 1 Tag des Monats / Um 00:00, nur am Monday"
    )


@pytest.mark.parametrize("locale", ["tlh", "", "../../secret", "en-gb"])
def test_an_unknown_language_is_english(locale: str) -> None:
    assert describe(parse("30 2 * * *"), locale) == "At 02:30"


def test_where_the_library_fails_the_text_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> str:
        raise RuntimeError

    monkeypatch.setattr(wording, "_describe", fail)
    assert describe(parse("30 2 * * *")) == "30 2 * * *"


def test_where_the_library_is_missing_the_text_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cron_descriptor", None)
    wording._describe.cache_clear()
    assert describe(parse("31 2 * * *")) == "31 2 * * *"
