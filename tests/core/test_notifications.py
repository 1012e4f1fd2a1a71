"""Notices are sent once, then counted, and grouped into messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.core.channels import OCCASIONS, Channel, read_channels, remarks
from django_declarative_cron.core.notifications import (
    GATHER,
    MAX_LINES,
    Notice,
    NoticeQueue,
    trial_message,
)

AT = datetime(2024, 1, 1, 10, tzinfo=UTC)
HOUR = 3600.0


def failure(task: str = "water", words: str = "ValueError: no water") -> Notice:
    return Notice("failure", task, AT, words)


def ledger(**how: Any) -> NoticeQueue:
    return NoticeQueue(Channel("mail", **how), "default")


def test_an_error_that_is_a_sentence_does_not_end_the_line() -> None:
    told = Notice("failure", "water", AT, "ValueError: mend it.", times=2).line
    assert told == (
        "water: ValueError: mend it (2 more times, the last of them shown), "
        "at 2024-01-01 10:00:00 UTC"
    )


def test_a_first_failure_is_sent_after_a_moment() -> None:
    book = ledger()
    book.add(failure(), 100.0)
    assert book.due(100.0) is None
    assert book.due_at == 100.0 + GATHER
    message = book.due(100.0 + GATHER)
    assert message is not None
    assert message.subject == "[cron default] Failed: water"
    assert message.lines == ["Failed. water: ValueError: no water, at 2024-01-01 10:00:00 UTC"]
    assert book.due(200.0) is None


def test_a_task_that_fails_every_minute_causes_two_messages_in_two_hours() -> None:
    book, told = ledger(), []
    for minute in range(120):
        book.add(failure(words=f"no water {minute}"), minute * 60.0)
        for second in (0, 30):
            message = book.due(minute * 60.0 + second)
            if message is not None:
                told.append((minute, message.lines))
    assert len(told) == 2
    assert told[0] == (0, ["Failed. water: no water 0, at 2024-01-01 10:00:00 UTC"])
    minute, (line,) = told[1]
    # The message has the failure of that minute and the number of those before it.
    assert minute == 60
    assert "(59 more times" in line or "no water 60" in line


def test_counted_notices_are_sent_after_their_time() -> None:
    book = ledger()
    book.add(failure(), 0.0)
    assert book.due(GATHER) is not None
    book.add(failure(words="second"), 10.0)
    book.add(failure(words="third"), 20.0)
    assert book.due_at == HOUR
    assert book.due(HOUR - 1) is None
    book.due(HOUR)
    message = book.due(HOUR + GATHER)
    assert message is not None
    assert message.lines == [
        "Failed. water: third (2 more times, the last of them shown), at 2024-01-01 10:00:00 UTC"
    ]


def test_a_thousand_tasks_that_fail_together_make_one_message() -> None:
    book = ledger()
    for number in range(1000):
        book.add(failure(f"task-{number}"), 5.0)
    message = book.due(5.0 + GATHER)
    assert message is not None
    assert len(message.lines) == MAX_LINES + 1
    assert message.lines[-1] == f"And {1000 - MAX_LINES} more."
    assert book.due(10.0) is None


def test_between_two_messages_there_is_a_pause() -> None:
    book = ledger(pause=timedelta(seconds=60))
    book.add(failure("one"), 0.0)
    assert book.due(GATHER) is not None
    book.add(failure("two"), 10.0)
    book.add(failure("three"), 20.0)
    assert book.due(30.0) is None
    message = book.due(GATHER + 60.0)
    assert message is not None
    assert message.total == 2


def test_at_the_end_the_pause_is_ignored() -> None:
    book = ledger()
    book.add(failure(), 0.0)
    assert book.due(0.0, hurry=True) is not None


def test_a_channel_sends_its_occasions_and_tasks() -> None:
    book = ledger(on=("missed",), tasks=("a-*",))
    for notice in (
        failure("a-1"),
        Notice("missed", "b-1", AT, "nobody was there"),
        Notice("missed", "a-1", AT, "nobody was there", 7),
    ):
        book.add(notice, 0.0)
    message = book.due(GATHER)
    assert message is not None
    assert message.lines == [
        "Missed. a-1: nobody was there (7 more times, the last of them shown),"
        " at 2024-01-01 10:00:00 UTC"
    ]
    assert message.as_data()["notices"][0]["times"] == 7


def test_lines_are_lines_and_not_too_long() -> None:
    notice = failure(words="a\nb" + "c" * 1000)
    assert "\n" not in notice.line
    assert len(notice.line) < 400


def test_a_trial_message_says_that_nothing_is_wrong() -> None:
    message = trial_message("default", AT, "ada")
    assert message.subject == "[cron default] Test"
    assert message.lines[0].startswith("Test. ada asked for this message")


def test_channels_are_named_by_their_kind_unless_they_have_a_name() -> None:
    found = read_channels(
        [
            {"kind": "mail", "to": ["ops@example.org"]},
            {"kind": "mail", "to": ["boss@example.org"], "on": ["no_leader"]},
            {"kind": "slack", "url": "https://hooks.example.org/s3cret", "name": "chat"},
        ]
    )
    assert [channel.name for channel in found] == ["mail", "mail-2", "chat"]
    assert found[0].on == OCCASIONS
    assert "s3cret" not in repr(found)
    assert "example.org" not in repr(found)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "must be a list of dicts, not dict"),
        ([{}], "has an item 0 that must have a `kind`: `mail` or `slack` or `webhook`"),
        ([{"kind": "slak"}], "did you mean `slack`"),
        ([{"kind": "mail"}], "must have `to`"),
        ([{"kind": "slack"}], "must have `url`"),
        ([{"kind": "mail", "to": ["s3cret"]}], "must have addresses of mail"),
        ([{"kind": "slack", "url": "s3cret"}], "has a `url` that must be a URL"),
        ([{"kind": "mail", "to": ["a@b"], "secret": "whsec_" + "A" * 32}], "does not go with"),
        ([{"kind": "mail", "to": ["a@b"], "on": ["failures"]}], "did you mean `failure`"),
        ([{"kind": "mail", "to": ["a@b"], "name": "x"}] * 2, "has the name 'x' twice"),
    ],
)
def test_an_invalid_value_is_explained_without_addresses(given: Any, words: str) -> None:
    with pytest.raises(ValueError) as refused:
        read_channels(given)
    assert words in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_a_webhook_without_a_signature_is_remarked_on() -> None:
    url = "https://hooks.example.org/a"
    found = read_channels([{"kind": "webhook", "url": url}, {"kind": "slack", "url": url}])
    assert list(remarks(found)) == [
        "has the webhook 'webhook' without a `secret`, so anybody may pose as us"
    ]
