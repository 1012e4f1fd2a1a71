"""The Schedulers page: standings, the banner, the outbox, and the test of notifications."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from django_declarative_cron.models import OutboxEvent, SchedulerInstance
from django_declarative_cron.monitoring import channels
from django_declarative_cron.store.guard import LONG_AGO

from ..receiver import Receiver
from ..timezones import local_time
from . import pages, rows
from .conftest import Login
from .pages import text
from .rows import NOW

LIST = "schedulerinstance"
AGO = NOW - timedelta(seconds=10)
LONG = NOW - timedelta(hours=3)


def lead(instance: SchedulerInstance) -> SchedulerInstance:
    state = rows.deployment()
    state.leader = instance
    state.led_since = NOW - timedelta(minutes=5)
    state.save()
    return instance


def lines(response: Any) -> list[str]:
    """Give the words of each line of the list."""
    html = response.content.decode()
    body = html.partition("<tbody>")[2].partition("</tbody>")[0]
    plain = (re.sub(r"<[^>]+>", " ", row) for row in body.split("</tr>"))
    return [" ".join(each.split()) for each in plain if each.strip()]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "● Standby"),
        ({"digest": "older"}, "◌ Outdated"),
        ({"digest": ""}, "▷ Runs tasks only"),
        ({"digest": "", "heartbeat_at": LONG}, "▲ Lost"),
        ({"stop_requested_at": AGO}, "◧ Stopping"),
        ({"heartbeat_at": LONG}, "▲ Lost"),
        ({"heartbeat_at": LONG, "mute_since": LONG}, "▲ Lost"),
        ({"mute_since": LONG}, "◔ Unresponsive"),
        ({"stop_requested_at": LONG, "stopped_at": AGO, "heartbeat_at": AGO}, "■ Stopped"),
        ({"stop_requested_at": LONG, "stopped_at": AGO, "heartbeat_at": LONG}, "✖ Crashed"),
        ({"stopped_at": AGO, "heartbeat_at": LONG}, "✖ Crashed"),
        (
            {"stop_requested_at": LONG, "heartbeat_at": LONG_AGO},
            "↯ Stopped with unfinished runs",
        ),
    ],
)
def test_each_standing_has_a_word_and_a_shape(
    root: Client, fields: dict[str, Any], words: str
) -> None:
    one = rows.instance(**fields)
    (line,) = lines(root.get(pages.changelist(LIST)))
    assert line.startswith(f"worker:4711 {words} ")
    assert words in text(root.get(pages.page(one)))


def test_one_leads_and_everything_about_it_is_shown(root: Client) -> None:
    leader = lead(rows.instance(host="one", release="2026.11", heartbeat_at=AGO))
    rows.instance(host="two")
    for name in ("a", "b"):
        rows.run(name, "running", finished_at=None, instance=leader, running_slot=name)
    rows.run("c", instance=leader)
    first, second = sorted(lines(root.get(pages.changelist(LIST))))
    moments = local_time("2026-11-28 10:00:20"), local_time("2026-11-28 09:55:30")
    assert first == f"one:4711 2026.11 ★ Leader 10 s ago {moments[0]} 2 {moments[1]} - -"
    assert second.startswith("two:4711 ● Standby 0 s ago ")
    assert second.endswith(f" - {local_time('2026-11-28 09:00:30')} - -")
    response = root.get(pages.page(leader))
    shown = text(response)
    assert "★ Leader" in shown and str(leader.pk) in shown
    assert re.findall(r'<th scope="row"><a href="([^"]*)">(\w)</a>', response.content.decode()) == [
        (pages.page(run), run.task_name) for run in leader.runs.filter(outcome="running")
    ]


def test_who_has_not_ended_comes_first(root: Client) -> None:
    ended = rows.instance(host="ended", stopped_at=NOW)
    rows.instance(host="silent", heartbeat_at=LONG)
    rows.instance(host="alive")
    found = [line.split(":")[0] for line in lines(root.get(pages.changelist(LIST)))]
    assert found == ["alive", "silent", "ended"]
    assert "No current runs." in text(root.get(pages.page(ended)))


def test_runs_have_no_links_for_those_who_may_not_see_them(login: Login) -> None:
    one = rows.instance()
    run = rows.run("a", "running", finished_at=None, instance=one, running_slot="a")
    html = login(f"view_{LIST}").get(pages.page(one)).content.decode()
    assert '<th scope="row">a</th>' in html
    assert pages.page(run) not in html


# --- the banner ----------------------------------------------------------------

HEADING = "No scheduler is running"
START = "Start a scheduler: python manage.py runscheduler"


@pytest.mark.parametrize("model", ["scheduledtask", LIST])
def test_no_banner_while_a_scheduler_is_running(root: Client, model: str) -> None:
    rows.instance(heartbeat_at=AGO)
    rows.instance(heartbeat_at=LONG)
    assert HEADING not in text(root.get(pages.changelist(model)))


def test_before_the_first_scheduler_the_command_is_named(root: Client) -> None:
    words = f"{HEADING} No scheduler has started yet. {START}"
    assert words in text(root.get(pages.changelist()))
    rows.deployment()
    rows.instance(scheduler=rows.deployment("other"))
    assert words in text(root.get(pages.changelist()))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"heartbeat_at": LONG}, "Last heartbeat: worker:4711, 3 h ago."),
        # Only its watchdog sends heartbeats.
        ({"mute_since": LONG}, "Last heartbeat: worker:4711, just now."),
        (
            {"stop_requested_at": AGO, "stopped_at": AGO, "heartbeat_at": AGO},
            "Last heartbeat: worker:4711, just now. It was stopped.",
        ),
        ({"heartbeat_at": LONG_AGO}, "Last scheduler: worker:4711."),
    ],
)
def test_the_end_of_the_last_one_is_told(root: Client, fields: dict[str, Any], words: str) -> None:
    rows.instance(**fields)
    assert f"{HEADING} {words} {START} All schedulers" in text(root.get(pages.changelist()))


def test_silence_is_told_with_the_number_overdue(root: Client) -> None:
    """P33."""
    rows.instance(heartbeat_at=LONG)
    for name in ("a", "b"):
        rows.task(name, next_run_at=NOW - timedelta(hours=2))
    rows.task("c")
    response = root.get(pages.changelist())
    assert f"worker:4711, 3 h ago. 2 tasks are overdue. {START} All schedulers" in text(response)
    assert f'href="{pages.changelist(LIST)}"' in response.content.decode()


def test_hosts_are_for_those_who_may_see_schedulers(login: Login) -> None:
    rows.instance(heartbeat_at=LONG, host="cellar")
    rows.task(next_run_at=NOW - timedelta(hours=2))
    response = login("view_scheduledtask").get(pages.changelist())
    words = "Last heartbeat: 3 h ago. 1 task is overdue."
    assert f"{HEADING} {words}" in text(response)
    assert "cellar" not in response.content.decode()
    assert pages.changelist(LIST) not in response.content.decode()


def test_a_longer_lease_allows_a_longer_silence(root: Client, settings: Any) -> None:
    rows.instance(heartbeat_at=NOW - timedelta(seconds=90))
    assert HEADING in text(root.get(pages.changelist()))
    settings.DECLARATIVE_CRON = {"LEASE": 120}
    assert HEADING not in text(root.get(pages.changelist()))


def test_nothing_is_read_for_those_who_may_not_see_the_page(login: Login, settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"EVENT_SINK": {"url": "https://example.org"}}
    client = login()
    for address in (pages.changelist(), pages.changelist(LIST)):
        with CaptureQueriesContext(connection) as caught:
            assert client.get(address).status_code == 403
        assert len(caught) <= 8
        asked = " ".join(query["sql"] for query in caught.captured_queries)
        assert "schedulerstate" not in asked and "outboxevent" not in asked


# --- events that wait for their receiver ---


def test_what_waits_for_the_receiver_is_said(root: Client, settings: Any) -> None:
    def shown() -> str:
        return text(root.get(pages.changelist(LIST)))

    settings.DECLARATIVE_CRON = {"EVENT_SINK": {"url": "https://example.org"}}
    waiting = {"scheduler": rows.deployment(), "type": "job.started", "task_name": "t", "body": ""}
    OutboxEvent.objects.bulk_create(
        OutboxEvent(event_id=uuid4(), created_at=NOW - timedelta(hours=hours), **waiting)
        for hours in (1, 0, 0)
    )
    assert "Event outbox 3 events are pending, the oldest for 1 h." in shown()
    OutboxEvent.objects.update(attempts=1, error="<b>503</b>")
    assert "1 h. Last error: <b>503</b>" in shown()
    OutboxEvent.objects.update(dead_lettered_at=NOW)
    assert "All events are delivered. 3 events are dead-lettered." in shown()
    settings.DECLARATIVE_CRON = {}
    assert "Event outbox" not in shown()
    settings.DECLARATIVE_CRON = {"EVENT_SINK": {"url": "https://example.org"}}
    OutboxEvent.objects.all().delete()
    assert "Event outbox All events are delivered." in shown()


# --- the test button of notifications ---


SEND = "admin:django_declarative_cron_schedulerinstance_notify"
VIEW, NOTIFY = "view_schedulerinstance", "notify_schedulerinstance"


def messages(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


def offers(client: Client) -> bool:
    return b'name="channel"' in client.get(pages.changelist(LIST)).content


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    made = Receiver()
    settings.DECLARATIVE_CRON = {"NOTIFY": [{"kind": "slack", "url": made.url, "name": "chat"}]}
    yield made
    made.close()


def test_who_may_sends_a_test_message(login: Login, receiver: Receiver) -> None:
    client = login(VIEW, NOTIFY)
    shown = client.get(pages.changelist(LIST)).content.decode()
    assert 'name="channel" value="chat"' in shown
    assert "s3cret" not in shown
    answer = client.post(reverse(SEND), {"channel": "chat"}, follow=True)
    assert messages(answer) == ["chat accepted the test message."]
    (got,) = receiver.got
    assert f"{VIEW}-{NOTIFY} asked for this message" in json.loads(got.body)["text"]
    assert LogEntry.objects.get().get_change_message() == "Send a test message: chat"
    receiver.behave = lambda got: 410
    answer = client.post(reverse(SEND), {"channel": "chat"}, follow=True)
    assert messages(answer) == ["chat did not accept the test message: it answered 410"]
    assert "s3cret" not in answer.content.decode()
    assert LogEntry.objects.count() == 2


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
    assert not offers(client)
    assert client.post(reverse(SEND), {"channel": "chat"}).status_code == 403
    assert receiver.got == []


def test_where_the_project_lets_nobody_act_nobody_may(
    root: Client, receiver: Receiver, settings: Any
) -> None:
    settings.DECLARATIVE_CRON = {**settings.DECLARATIVE_CRON, "ADMIN_ACTIONS": False}
    assert not offers(root)
    assert root.post(reverse(SEND), {"channel": "chat"}).status_code == 403
    assert receiver.got == []


def test_without_channels_there_is_no_button(login: Login) -> None:
    assert not offers(login(VIEW, NOTIFY))
