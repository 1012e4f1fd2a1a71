"""The test button of notifications: for whom, by POST, and written down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.urls import reverse

from django_declarative_cron.monitoring import channels

from ..receiver import Receiver
from .conftest import Login

LIST = "admin:django_declarative_cron_schedulerinstance_changelist"
SEND = "admin:django_declarative_cron_schedulerinstance_notify"
VIEW, NOTIFY = "view_schedulerinstance", "notify_schedulerinstance"


def said(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    made = Receiver()
    settings.DECLARATIVE_CRON = {"NOTIFY": [{"kind": "slack", "url": made.url, "name": "chat"}]}
    yield made
    made.close()


def test_who_may_sends_a_test_message(login: Login, receiver: Receiver) -> None:
    client = login(VIEW, NOTIFY)
    shown = client.get(reverse(LIST)).content.decode()
    assert 'name="channel" value="chat"' in shown
    assert "s3cret" not in shown
    answer = client.post(reverse(SEND), {"channel": "chat"}, follow=True)
    assert said(answer) == ["chat accepted the test message."]
    (got,) = receiver.got
    assert f"{VIEW}-{NOTIFY} asked for this message" in json.loads(got.body)["text"]
    entry = LogEntry.objects.get()
    assert entry.get_change_message() == "Send a test message: chat"


def test_why_it_was_not_taken_is_said_without_the_address(login: Login, receiver: Receiver) -> None:
    receiver.behave = lambda got: 410
    answer = login(VIEW, NOTIFY).post(reverse(SEND), {"channel": "chat"}, follow=True)
    assert said(answer) == ["chat did not accept the test message: it answered 410"]
    assert "s3cret" not in answer.content.decode()
    assert LogEntry.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_a_receiver_is_waited_for(
    login: Login, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    seen: list[bool] = []
    monkeypatch.setattr(channels, "deliver", lambda *given: seen.append(connection.in_atomic_block))
    login(VIEW, NOTIFY).post(reverse(SEND), {"channel": "chat"})
    assert seen == [False]


def test_nothing_is_sent_by_looking(login: Login, receiver: Receiver) -> None:
    client = login(VIEW, NOTIFY)
    assert client.get(reverse(SEND), {"channel": "chat"}).status_code == 405
    assert client.post(reverse(SEND), {"channel": "other"}).status_code == 404
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    assert strict.post(reverse(SEND), {"channel": "chat"}).status_code == 403
    assert receiver.got == []


@pytest.mark.parametrize("codenames", [(VIEW,), (NOTIFY,), ()])
def test_nobody_else_is_offered_it_or_may(
    login: Login, receiver: Receiver, codenames: tuple[str, ...]
) -> None:
    client = login(*codenames)
    assert b'name="channel"' not in client.get(reverse(LIST)).content
    assert client.post(reverse(SEND), {"channel": "chat"}).status_code == 403
    assert receiver.got == []


def test_where_the_project_lets_nobody_act_nobody_may(
    root: Client, receiver: Receiver, settings: Any
) -> None:
    settings.DECLARATIVE_CRON = {**settings.DECLARATIVE_CRON, "ADMIN_ACTIONS": False}
    assert b'name="channel"' not in root.get(reverse(LIST)).content
    assert root.post(reverse(SEND), {"channel": "chat"}).status_code == 403
    assert receiver.got == []


def test_without_channels_there_is_no_button(login: Login) -> None:
    assert b'name="channel"' not in login(VIEW, NOTIFY).get(reverse(LIST)).content
