"""``cron notify``: messages arrive, and somebody is told that no scheduler is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache

from django_declarative_cron.monitoring import http_client
from django_declarative_cron.store.status import attendance
from django_declarative_cron.testing import ManualClock, Simulation

from ..receiver import Receiver
from .conftest import DELAY, HERE, START, Cron

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]


@pytest.fixture(autouse=True)
def _told_nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(http_client, "BACKOFF", 0.0)
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def channels(settings: Any, receiver: Receiver) -> None:
    """Name two channels, of which one tells of all and one of overdue tasks."""
    settings.DECLARATIVE_CRON = {
        "NOTIFY": [
            {"kind": "webhook", "url": receiver.url, "name": "hook"},
            {"kind": "slack", "url": receiver.url, "name": "chat", "on": ["overdue"]},
        ]
    }


def bodies(receiver: Receiver) -> list[Any]:
    return [json.loads(got.body) for got in receiver.got]


def test_a_test_message_goes_to_every_channel(
    cron: Cron, channels: None, receiver: Receiver
) -> None:
    answer = cron("notify", "--test", "--user", "ada")
    assert (answer.code, answer.lines) == (0, ["hook: sent.", "chat: sent."])
    hook, chat = bodies(receiver)
    assert hook["subject"] == "[cron default] Test"
    assert hook["notices"][0]["words"].startswith("ada asked for this message")
    assert "Test. ada asked" in chat["text"]


def test_a_test_of_one_channel_says_why_it_was_not_taken(
    cron: Cron, channels: None, receiver: Receiver
) -> None:
    receiver.behave = lambda got: 404
    answer = cron("notify", "--test", "--channel", "chat")
    assert (answer.code, answer.err) == (1, "Not sent. chat: it answered 404.")
    assert len(receiver.got) == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--test", "--channel", "x"], "There is no channel 'x'; there are 'hook', 'chat'."),
        (["--test", "--channel", ""], "There is no channel ''; there are 'hook', 'chat'."),
    ],
)
def test_an_unknown_channel_is_wrong_use(
    cron: Cron, channels: None, words: list[str], error: str
) -> None:
    answer = cron("notify", *words)
    assert (answer.code, answer.err) == (2, error)


def test_without_channels_it_is_wrong_use(cron: Cron) -> None:
    answer = cron("notify", "--check")
    assert (answer.code, answer.err) == (
        2,
        "No channel is declared: set NOTIFY in DECLARATIVE_CRON.",
    )


def test_before_the_first_scheduler_people_are_told(
    cron: Cron, channels: None, receiver: Receiver
) -> None:
    answer = cron("notify", "--check")
    assert answer.code == 1
    assert "no scheduler has ever sent a heartbeat" in answer.err
    (told,) = bodies(receiver)
    assert [each["occasion"] for each in told["notices"]] == ["no_leader"]


def test_programs_are_told_what_people_are(cron: Cron, channels: None, receiver: Receiver) -> None:
    answer = cron("notify", "--check", "--format", "json")
    (notice,) = answer.data.pop("notices")
    assert notice["words"] == "no scheduler has ever sent a heartbeat"
    assert (answer.code, answer.data["healthy"], answer.data["notified"]) == (1, False, 1)
    receiver.behave = lambda got: 404 if b"text" in got.body[:7] else 204
    tested = cron("notify", "--test", "--format", "json")
    assert tested.data == [
        {"channel": "hook", "error": ""},
        {"channel": "chat", "error": "it answered 404"},
    ]
    assert tested.code == 1
    sim = Simulation(start=START)
    sim.initialize([("hourly", "0 * * * *", f"{HERE}.nothing", DELAY)])
    sim.poll()
    fine = cron("notify", "--check", "--format", "json", clock=sim.clock)
    assert fine.data == {"healthy": True, "notices": [], "notified": 0, "errors": []}
    assert fine.code == 0


def test_after_a_proper_stop_people_are_told_for_how_long_nobody_was_there(
    cron: Cron, channels: None, receiver: Receiver
) -> None:
    sim = Simulation(start=START)
    sim.initialize([("hourly", "0 * * * *", f"{HERE}.nothing", DELAY)])
    sim.poll()
    sim.stop()
    later = ManualClock(sim.clock.now() + timedelta(minutes=5))
    told = " ".join(cron("notify", "--check", clock=later).err.split())
    assert "the last heartbeat is 300 s old" in told
    lead = attendance("default", "default", later.database_time())
    assert lead is not None
    assert (lead.present, lead.leaderless()) == ((), 300.0)


def test_silence_is_told_once_and_again_after_its_time(
    cron: Cron, channels: None, receiver: Receiver
) -> None:
    sim = Simulation(start=START)
    sim.initialize([("hourly", "0 * * * *", f"{HERE}.nothing", DELAY)])
    sim.poll()
    assert cron("notify", "--check", clock=sim.clock).code == 0
    later = ManualClock(sim.clock.now() + timedelta(hours=1, minutes=2))
    answer = cron("notify", "--check", clock=later)
    assert answer.code == 1
    assert "(2 channels notified.)" in " ".join(answer.err.split())
    hook, chat = bodies(receiver)
    assert [each["occasion"] for each in hook["notices"]] == ["no_leader", "overdue"]
    assert hook["notices"][1]["task"] == "hourly"
    assert "Overdue. hourly: it should have started at 11:00:00 UTC" in chat["text"]
    # People know already; the exit code says it again.
    assert cron("notify", "--check", clock=later).code == 1
    assert len(receiver.got) == 2
    cache.clear()
    assert cron("notify", "--check", clock=later).code == 1
    assert len(receiver.got) == 4


def test_what_was_not_taken_is_told_the_next_time(
    cron: Cron, channels: None, receiver: Receiver
) -> None:
    receiver.behave = lambda got: 500
    answer = cron("notify", "--check")
    assert answer.code == 1
    assert "hook: it answered 500" in answer.err
    assert "(0 channels notified.)" in " ".join(answer.err.split())
    receiver.behave = lambda got: 204
    assert "(1 channel notified.)" in " ".join(cron("notify", "--check").err.split())


def test_a_cache_that_fails_keeps_nobody_from_being_told(
    cron: Cron, channels: None, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("no cache")

    monkeypatch.setattr("django_declarative_cron.monitoring.dead_man_switch.cache.add", fail)
    assert cron("notify", "--check").code == 1
    assert len(receiver.taken) == 1
