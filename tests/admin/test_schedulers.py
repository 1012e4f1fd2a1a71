"""The Schedulers page, and the banner where nobody schedules."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from django_declarative_cron.models import SchedulerInstance
from django_declarative_cron.store.guard import LONG_AGO

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
