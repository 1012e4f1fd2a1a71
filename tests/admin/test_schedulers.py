"""The Schedulers page: standings, the banner, the outbox, and the test of notifications."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

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
from .rows import NOW

Words = Callable[[Any], str]
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
    root: Client, text: Words, fields: dict[str, Any], words: str
) -> None:
    one = rows.instance(**fields)
    (line,) = lines(root.get(pages.changelist(LIST)))
    assert line.startswith(f"worker:4711 {words} ")
    assert words in text(root.get(pages.page(one)))


def test_one_leads_and_everything_about_it_is_shown(root: Client, text: Words) -> None:
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
    rows.instance(host="ended", stopped_at=NOW)
    rows.instance(host="silent", heartbeat_at=LONG)
    rows.instance(host="alive")
    found = [line.split(":")[0] for line in lines(root.get(pages.changelist(LIST)))]
    assert found == ["alive", "silent", "ended"]


def test_a_process_without_runs_says_so(root: Client, text: Words) -> None:
    assert "No current runs." in text(root.get(pages.page(rows.instance())))


def test_runs_have_no_links_for_those_who_may_not_see_them(login: Login) -> None:
    one = rows.instance()
    run = rows.run("a", "running", finished_at=None, instance=one, running_slot="a")
    html = login(f"view_{LIST}").get(pages.page(one)).content.decode()
    assert '<th scope="row">a</th>' in html
    assert pages.page(run) not in html


def test_a_hundred_schedulers_take_eight_queries_at_most(
    root: Client, django_assert_max_num_queries: Any
) -> None:
    state = rows.deployment()
    for number in range(110):
        one = rows.instance(id=UUID(int=number), scheduler=state)
        rows.run(f"t{number}", "running", instance=one, running_slot=f"t{number}")
    root.get(pages.changelist(LIST))
    with django_assert_max_num_queries(8) as queries:
        response = root.get(pages.changelist(LIST))
    assert len(lines(response)) == 100
    assert sum("declarative_cron" in query["sql"] for query in queries.captured_queries) <= 4


# --- the banner ----------------------------------------------------------------

HEADING = "No scheduler is running"


@pytest.mark.parametrize("model", ["scheduledtask", LIST])
def test_no_banner_while_somebody_is_at_work(root: Client, text: Words, model: str) -> None:
    rows.instance(heartbeat_at=AGO)
    rows.instance(heartbeat_at=LONG)
    assert HEADING not in text(root.get(pages.changelist(model)))


def test_before_the_first_scheduler_the_command_is_named(root: Client, text: Words) -> None:
    shown = text(root.get(pages.changelist()))
    assert f"{HEADING} No scheduler has started yet." in shown
    assert "Start a scheduler: python manage.py runscheduler" in shown


def test_silence_is_told_with_the_number_overdue(root: Client, text: Words) -> None:
    """P33."""
    rows.instance(heartbeat_at=LONG)
    for name in ("a", "b"):
        rows.task(name, next_run_at=NOW - timedelta(hours=2))
    rows.task("c")
    response = root.get(pages.changelist())
    assert (
        f"{HEADING} Last heartbeat: worker:4711, 3 h ago. 2 tasks are overdue."
        " Start a scheduler: python manage.py runscheduler All schedulers"
    ) in text(response)
    assert f'href="{pages.changelist(LIST)}"' in response.content.decode()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"stop_requested_at": AGO, "stopped_at": AGO, "heartbeat_at": AGO},
            "Last heartbeat: worker:4711, just now. It was stopped. Start a scheduler:",
        ),
        ({"heartbeat_at": LONG_AGO}, "Last scheduler: worker:4711. Start a scheduler:"),
    ],
)
def test_the_end_of_the_last_one_is_told(
    root: Client, text: Words, fields: dict[str, Any], words: str
) -> None:
    rows.instance(**fields)
    assert f"{HEADING} {words}" in text(root.get(pages.changelist()))


def test_hosts_are_for_those_who_may_see_schedulers(login: Login, text: Words) -> None:
    rows.instance(heartbeat_at=LONG, host="cellar")
    rows.task(next_run_at=NOW - timedelta(hours=2))
    response = login("view_scheduledtask").get(pages.changelist())
    words = "Last heartbeat: 3 h ago. 1 task is overdue."
    assert f"{HEADING} {words}" in text(response)
    assert "cellar" not in response.content.decode()
    assert pages.changelist(LIST) not in response.content.decode()


def test_one_that_only_its_watchdog_vouches_for_is_not_at_work(root: Client, text: Words) -> None:
    rows.instance(mute_since=LONG)
    assert f"{HEADING} Last heartbeat: worker:4711" in text(root.get(pages.changelist()))


def test_a_longer_lease_allows_a_longer_silence(root: Client, text: Words, settings: Any) -> None:
    rows.instance(heartbeat_at=NOW - timedelta(seconds=90))
    assert HEADING in text(root.get(pages.changelist()))
    settings.DECLARATIVE_CRON = {"LEASE": 120}
    assert HEADING not in text(root.get(pages.changelist()))


def test_schedulers_of_another_deployment_do_not_count(root: Client, text: Words) -> None:
    rows.deployment()
    rows.instance(scheduler=rows.deployment("other"))
    assert f"{HEADING} No scheduler has started yet." in text(root.get(pages.changelist()))


def test_whoever_may_not_see_the_list_is_told_nothing(
    login: Login, django_assert_max_num_queries: Any
) -> None:
    client = login()
    with django_assert_max_num_queries(8) as queries:
        assert client.get(pages.changelist()).status_code == 403
    assert not any("schedulerstate" in query["sql"] for query in queries.captured_queries)


# --- events that wait for their receiver ---


@pytest.fixture
def waiting(db: None, settings: Any) -> list[OutboxEvent]:
    """Let three events wait, the oldest for an hour."""
    settings.DECLARATIVE_CRON = {"EVENT_SINK": {"url": "https://example.org"}}
    made = [
        OutboxEvent(
            scheduler=rows.deployment(),
            event_id=uuid.uuid4(),
            type="job.started",
            task_name="t",
            body="{}",
            created_at=NOW - timedelta(hours=n),
        )
        for n in (1, 0, 0)
    ]
    return OutboxEvent.objects.bulk_create(made)


@pytest.fixture
def backlog(root: Client, text: Words) -> Callable[[], str]:
    def words() -> str:
        return text(root.get(pages.changelist(LIST)))

    return words


def test_what_waits_is_said(waiting: list[OutboxEvent], backlog: Callable[[], str]) -> None:
    assert "Event outbox 3 events are pending, the oldest for 1 h." in backlog()
    OutboxEvent.objects.update(attempts=1, error="<b>503</b>")
    assert "1 h. Last error: <b>503</b>" in backlog()
    OutboxEvent.objects.update(dead_lettered_at=NOW)
    assert "All events are delivered. 3 events are dead-lettered." in backlog()
    OutboxEvent.objects.all().delete()
    assert "Event outbox All events are delivered." in backlog()


def test_nothing_is_said_without_a_sink(
    waiting: list[OutboxEvent], backlog: Callable[[], str], settings: Any
) -> None:
    settings.DECLARATIVE_CRON = {}
    assert "Event outbox" not in backlog()


def test_nothing_is_asked_for_who_may_not_see_schedulers(
    waiting: list[OutboxEvent], login: Login
) -> None:
    client = login()
    with CaptureQueriesContext(connection) as caught:
        assert client.get(pages.changelist(LIST)).status_code == 403
    assert not [query for query in caught.captured_queries if "outboxevent" in query["sql"]]


# --- the test button of notifications ---


PAGE = "admin:django_declarative_cron_schedulerinstance_changelist"
SEND = "admin:django_declarative_cron_schedulerinstance_notify"
VIEW, NOTIFY = "view_schedulerinstance", "notify_schedulerinstance"


def messages(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    made = Receiver()
    settings.DECLARATIVE_CRON = {"NOTIFY": [{"kind": "slack", "url": made.url, "name": "chat"}]}
    yield made
    made.close()


def test_who_may_sends_a_test_message(login: Login, receiver: Receiver) -> None:
    client = login(VIEW, NOTIFY)
    shown = client.get(reverse(PAGE)).content.decode()
    assert 'name="channel" value="chat"' in shown
    assert "s3cret" not in shown
    answer = client.post(reverse(SEND), {"channel": "chat"}, follow=True)
    assert messages(answer) == ["chat accepted the test message."]
    (got,) = receiver.got
    assert f"{VIEW}-{NOTIFY} asked for this message" in json.loads(got.body)["text"]
    entry = LogEntry.objects.get()
    assert entry.get_change_message() == "Send a test message: chat"


def test_why_it_was_not_taken_is_said_without_the_address(login: Login, receiver: Receiver) -> None:
    receiver.behave = lambda got: 410
    answer = login(VIEW, NOTIFY).post(reverse(SEND), {"channel": "chat"}, follow=True)
    assert messages(answer) == ["chat did not accept the test message: it answered 410"]
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
    assert b'name="channel"' not in client.get(reverse(PAGE)).content
    assert client.post(reverse(SEND), {"channel": "chat"}).status_code == 403
    assert receiver.got == []


def test_where_the_project_lets_nobody_act_nobody_may(
    root: Client, receiver: Receiver, settings: Any
) -> None:
    settings.DECLARATIVE_CRON = {**settings.DECLARATIVE_CRON, "ADMIN_ACTIONS": False}
    assert b'name="channel"' not in root.get(reverse(PAGE)).content
    assert root.post(reverse(SEND), {"channel": "chat"}).status_code == 403
    assert receiver.got == []


def test_without_channels_there_is_no_button(login: Login) -> None:
    assert b'name="channel"' not in login(VIEW, NOTIFY).get(reverse(PAGE)).content
