"""Schedules in plain words."""

from __future__ import annotations

from typing import Any

import pytest

from django_declarative_cron.cron import (
    describe,
    fires_only_in_some_years,
    parse,
    remarks_on,
    wording,
)
from django_declarative_cron.cron.wording import days_some_months_lack


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


# --- what is said of the ojs dialect ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 0 31 * *", [(31, (2, 4, 6, 9, 11))]),
        ("0 0 30 * *", [(30, (2,))]),
        ("0 0 29 * *", [(29, (2,))]),
        ("0 0 31 2 0", [(31, (2,))]),
        ("0 0 29,31 1-4 *", [(29, (2,)), (31, (2, 4))]),
        ("0 0 31W * *", [(31, (2, 4, 6, 9, 11))]),
        ("0 0 31 1,3 *", []),
        ("0 0 28-31 * *", []),
        ("0 0 1-31 * *", []),
        ("0 0 28 * *", []),
        ("0 0 L * *", []),
        ("0 0 LW * *", []),
        ("0 0 * * 1", []),
        ("@monthly", []),
        ("@every 1h", []),
    ],
)
def test_days_that_some_months_lack(text: str, expected: list[tuple[int, tuple[int, ...]]]) -> None:
    assert list(days_some_months_lack(parse(text, "ojs"))) == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0 0 31 2 0", ["day 31 does not exist in February"]),
        ("0 0 30,31 4 1", []),
        ("0 0 31 4,6 1", ["day 31 does not exist in April, June"]),
        ("0 0 29 2,3 *", ["day 29 does not exist in February of most years"]),
        (
            "*/90 * * * *",
            ["`*/90` in the minute field names 0 only: the step is longer than what it divides"],
        ),
        ("5-5/2 0,1-9/20 1 * *", [
            "`5-5/2` in the minute field names 5 only: the step is longer than what it divides",
            "`1-9/20` in the hour field names 1 only: the step is longer than what it divides",
        ]),
        ("@every 500ms", ["`@every 500ms` counts as one second"]),
        ("@every 1s", []),
        ("*/15 9-17 * * MON-FRI", []),
        ("@daily", []),
    ],
)  # fmt: skip
def test_surprises_are_told_and_accepted(text: str, told: list[str]) -> None:
    assert list(remarks_on(parse(text, "ojs"))) == told


def test_the_posix_dialect_has_no_remarks() -> None:
    assert remarks_on(parse("0 0 31 2 0")) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, True) for text in ("0 0 29 2 *", "0 0 29,30 2 *")),
        *((text, False) for text in ("0 0 28,29 2 *", "0 0 29 2,3 *", "0 0 * 2 1")),
        ("0 0 29W FEB *", True),
        ("0 0 * 2 5#5", True),
        ("0 0 * 2,3 5#5", True),
        ("0 0 * * 5#5", False),
        ("0 0 L 2 *", False),
        ("0 0 29 2 1", False),
        ("0 0 31 12 *", False),
        ("@every 9000h", False),
    ],
)
def test_p86_expressions_of_some_years_are_known(text: str, expected: bool) -> None:
    assert fires_only_in_some_years(parse(text, "ojs")) is expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("*/15 9-17 * * 1-5", "Every 15 minutes, between 09:00 and 17:59, Monday through Friday"),
        ("0 */6 * * *", "Every 6 hours"),
        ("0 */7 * * *", "At 00:00, 07:00, 14:00 and 21:00"),
        ("*/10 * * * * *", "Every 10 seconds"),
        ("30 0 9 * * *", "At 09:00:30"),
        ("0 0 9 * * *", "At 09:00"),
        ("@weekly", "At 00:00, only on Sunday"),
        ("0 23 L * *", "At 23:00, on the last day of the month"),
        ("0 9 LW * *", "At 09:00, on the last weekday of the month"),
        ("0 9 15W * *", "At 09:00, on the weekday nearest day 15 of the month"),
        ("0 9 * * FRIL", "At 09:00, on the last Friday of the month"),
        ("0 9 * * 5#3", "At 09:00, on the third Friday of the month"),
        (
            "0 9 1,L * *",
            "At 09:00, on day 1 of the month; or at 09:00, on the last day of the month",
        ),
        (
            "0 9 L * FRI",
            "At 09:00, on the last day of the month; or at 09:00, only on Friday",
        ),
        ("0 9 L * 0-6", "At 09:00"),
        ("@every 1h30m", "Every 1 hour 30 minutes"),
        ("@every 2s1ms", "Every 2 seconds 1 millisecond"),
        ("@every 90000s", "Every 25 hours"),
    ],
)  # fmt: skip
def test_words_of_ojs(text: str, words: str) -> None:
    assert describe(parse(text, "ojs")) == words


def test_words_of_ojs_in_another_language() -> None:
    assert describe(parse("*/5 * * * *", "ojs"), "de") == "Alle 5 Minuten"
    assert describe(parse("@every 5m", "ojs"), "de") == "@every 5m"
