"""Notices are sent once, then counted, and grouped into messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.core import notifications
from django_declarative_cron.core.channels import OCCASIONS, Channel, read_channels, remarks
from django_declarative_cron.core.notifications import (
    GATHER,
    MAX_LINES,
    Notice,
    NoticeQueue,
    Observation,
    Observer,
)

AT = datetime(2024, 1, 1, 10, tzinfo=UTC)
HOUR = 3600.0


def failure(task: str = "water", words: str = "ValueError: no water") -> Notice:
    return Notice("failure", task, AT, words)


def queue_of(**how: Any) -> NoticeQueue:
    return NoticeQueue(Channel("mail", **how), "default")


def test_an_error_that_is_a_sentence_does_not_end_the_line() -> None:
    sent = Notice("failure", "water", AT, "ValueError: mend it.", times=2).line
    assert sent == (
        "water: ValueError: mend it (2 more times, the last of them shown), "
        "at 2024-01-01 10:00:00 UTC"
    )


def test_a_first_failure_is_sent_after_a_moment() -> None:
    queue = queue_of()
    queue.add(failure(), 100.0)
    assert queue.due(100.0) is None
    assert queue.due_at == 100.0 + GATHER
    message = queue.due(100.0 + GATHER)
    assert message is not None
    assert message.subject == "[cron default] Failed: water"
    assert message.lines == ["Failed. water: ValueError: no water, at 2024-01-01 10:00:00 UTC"]
    assert queue.due(200.0) is None


def test_a_task_that_fails_every_minute_causes_two_messages_in_two_hours() -> None:
    queue, sent = queue_of(), []
    for minute in range(120):
        queue.add(failure(words=f"no water {minute}"), minute * 60.0)
        for second in (0, 30):
            message = queue.due(minute * 60.0 + second)
            if message is not None:
                sent.append((minute, message.lines))
    assert len(sent) == 2
    assert sent[0] == (0, ["Failed. water: no water 0, at 2024-01-01 10:00:00 UTC"])
    minute, (line,) = sent[1]
    # The message has the failure of that minute and the number of those before it.
    assert minute == 60
    assert "(59 more times" in line or "no water 60" in line


def test_counted_notices_are_sent_after_their_time() -> None:
    queue = queue_of()
    queue.add(failure(), 0.0)
    assert queue.due(GATHER) is not None
    queue.add(failure(words="second"), 10.0)
    queue.add(failure(words="third"), 20.0)
    assert queue.due_at == HOUR
    assert queue.due(HOUR - 1) is None
    queue.due(HOUR)
    message = queue.due(HOUR + GATHER)
    assert message is not None
    assert message.lines == [
        "Failed. water: third (2 more times, the last of them shown), at 2024-01-01 10:00:00 UTC"
    ]


def test_a_thousand_tasks_that_fail_together_make_one_message() -> None:
    queue = queue_of()
    for number in range(1000):
        queue.add(failure(f"task-{number}"), 5.0)
    message = queue.due(5.0 + GATHER)
    assert message is not None
    assert len(message.lines) == MAX_LINES + 1
    assert message.lines[-1] == f"And {1000 - MAX_LINES} more."
    assert queue.due(10.0) is None


def test_between_two_messages_there_is_a_pause() -> None:
    queue = queue_of(pause=timedelta(seconds=60))
    queue.add(failure("one"), 0.0)
    assert queue.due(GATHER) is not None
    queue.add(failure("two"), 10.0)
    queue.add(failure("three"), 20.0)
    assert queue.due(30.0) is None
    message = queue.due(GATHER + 60.0)
    assert message is not None
    assert message.total == 2


def test_at_the_end_the_pause_is_ignored() -> None:
    queue = queue_of()
    queue.add(failure(), 0.0)
    assert queue.due(0.0, hurry=True) is not None


def test_a_channel_sends_its_occasions_and_tasks() -> None:
    queue = queue_of(on=("missed",), tasks=("a-*",))
    for notice in (
        failure("a-1"),
        Notice("missed", "b-1", AT, "nobody was there"),
        Notice("missed", "a-1", AT, "nobody was there", 7),
    ):
        queue.add(notice, 0.0)
    message = queue.due(GATHER)
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


def test_a_test_message_says_that_nothing_is_wrong() -> None:
    message = notifications.test_message("default", AT, "ada")
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
        (
            [{"kind": "mail", "to": ["a@b"], "secret": "whsec_" + "A" * 32}],
            "has a `secret`, which the kind mail does not accept",
        ),
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
        "has the webhook 'webhook' without a `secret`, so messages can be forged"
    ]


# --- polling ---


def notified(observer: Observer, observation: Observation) -> list[tuple[str, str]]:
    return [(notice.occasion, notice.task) for notice in observer.compare(observation)]


def leads(**more: object) -> Observation:
    return Observation(AT, leads=True, **more)  # type: ignore[arg-type]


def test_a_new_leader_does_not_repeat_known_failures() -> None:
    observer = Observer()
    assert notified(observer, leads(failing={"a": (3, "")})) == []
    assert notified(observer, leads(failing={"a": (4, ""), "b": (1, "ValueError")})) == [
        ("failure", "b")
    ]
    assert notified(observer, leads()) == [("recovery", "a"), ("recovery", "b")]
    assert notified(observer, leads()) == []


def test_a_poll_does_not_repeat_the_notice_of_an_event() -> None:
    observer = Observer()
    assert notified(observer, leads()) == []
    observer.task_failed("a")
    observer.begin_poll()
    assert notified(observer, leads(failing={"a": (1, "")})) == []
    assert observer.task_succeeded("a")
    assert not observer.task_succeeded("a")
    observer.begin_poll()
    assert notified(observer, leads()) == []


def test_events_during_a_poll_are_newer_than_its_rows() -> None:
    observer = Observer()
    assert notified(observer, leads(failing={"b": (1, "")})) == []
    observer.begin_poll()
    observer.task_failed("a")
    assert observer.task_succeeded("b")
    # Both events are newer than the rows.
    assert notified(observer, leads(failing={"b": (1, "")})) == []
    observer.begin_poll()
    assert notified(observer, leads(failing={"a": (1, "")})) == []
    assert observer.task_succeeded("a")


def test_an_overdue_task_and_its_recovery_are_notified() -> None:
    observer = Observer()
    assert notified(observer, leads(overdue={"a": AT})) == [("overdue", "a")]
    assert notified(observer, leads(overdue={"a": AT})) == []
    assert notified(observer, leads()) == [("recovery", "a")]


def test_one_instance_notifies_of_a_missing_leader_and_of_its_end() -> None:
    speaker, silent = Observer(), Observer()
    gone = Observation(AT, leads=False, speaks=True, leaderless=45.0)
    quiet = Observation(AT, leads=False, speaks=False, leaderless=45.0)
    assert notified(speaker, gone) == [("no_leader", "")]
    assert notified(silent, quiet) == []
    assert notified(speaker, Observation(AT, leads=False, speaks=True)) == [("recovery", "")]
    assert notified(silent, Observation(AT, leads=False)) == []


def test_a_former_leader_does_not_notify_of_tasks() -> None:
    observer = Observer()
    notified(observer, leads(failing={"a": (1, "")}))
    assert notified(observer, Observation(AT, leads=False)) == []
    assert not observer.task_succeeded("a")
