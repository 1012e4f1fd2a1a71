"""The list of scheduled tasks."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from ..timezones import local_time
from . import pages, rows
from .conftest import LIMITING, Login
from .rows import NOW

Words = Callable[[Any], str]


def cells(response: Any, field: str) -> list[str]:
    shape = rf'<t[dh] [^>]*class="field-{field}[^"]*">(.*?)</t[dh]>'
    found = re.findall(shape, response.content.decode(), re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in found]


DATES = ("last_attempt_at", "last_success_at", "pending_retry")


def test_a_task_that_never_ran_has_three_empty_dates(root: Client) -> None:
    """AD-01."""
    rows.task()
    response = root.get(pages.changelist())
    assert [cells(response, field) for field in DATES] == [["-"], ["-"], ["-"]]


def test_a_task_that_ran_before_its_schedule_changed_says_so(root: Client) -> None:
    rows.task(run_count=3)
    response = root.get(pages.changelist())
    assert cells(response, "last_attempt_at") == ["not since its schedule changed"]


def test_attempt_and_success_are_shown_and_no_retry(root: Client) -> None:
    """AD-02, AD-04."""
    rows.task(last_attempt_at=NOW.replace(second=0), last_success_at=NOW.replace(minute=2))
    response = root.get(pages.changelist())
    assert [cells(response, field) for field in DATES] == [
        [local_time("2026-11-28 10:00:00")],
        [local_time("2026-11-28 10:02:30")],
        ["-"],
    ]


def test_a_pending_retry_is_shown(root: Client) -> None:
    rows.task(pending_retry_until=NOW + timedelta(minutes=5))
    response = root.get(pages.changelist())
    assert cells(response, "pending_retry") == [local_time("2026-11-28 10:05:30")]
    assert cells(response, "status") == ["↻ Retrying"]


def test_the_next_run_is_shown_in_the_zone_of_the_viewer_and_from_now(root: Client) -> None:
    """P14, P52."""
    rows.task(
        "moscow", cron="30 9 * * *", next_run_at=NOW.replace(day=29, hour=9, minute=30, second=0)
    )
    rows.task("berlin", timezone="Europe/Berlin")
    response = root.get(pages.changelist())
    assert cells(response, "next_run") == [
        f"{local_time('2026-11-28 11:00:00')} in 59 minutes",
        f"{local_time('2026-11-29 09:30:00')} in 23 hours",
    ]


def test_the_schedule_is_said_in_words_and_as_written(root: Client) -> None:
    rows.task(cron="30 9 * * 1-5", timezone="Europe/Berlin")
    (cell,) = cells(root.get(pages.changelist()), "schedule")
    assert "09:30" in cell
    assert cell.endswith("30 9 * * 1-5 Europe/Berlin")


def test_words_follow_the_language_of_the_reader(root: Client) -> None:
    rows.task(cron="30 9 * * 1")
    with translation.override("de"):
        response = root.get(pages.changelist(), headers={"accept-language": "de"})
    (cell,) = cells(response, "schedule")
    assert "Montag" in cell


def test_tasks_that_run_next_come_first_and_those_that_never_will_last(root: Client) -> None:
    rows.task("later", next_run_at=NOW + timedelta(hours=2))
    rows.task("never", next_run_at=None)
    rows.task("overdue", next_run_at=NOW - timedelta(hours=2))
    rows.task("also overdue", next_run_at=NOW - timedelta(hours=2))
    response = root.get(pages.changelist())
    assert cells(response, "name") == ["also overdue", "overdue", "later", "never"]
    assert cells(response, "next_run")[-1] == "-"


@pytest.mark.parametrize("column", range(2, 8))
def test_columns_sort_and_every_order_is_stable(root: Client, column: int) -> None:
    for number in range(3):
        rows.task(f"t{number}")
    for order in (f"?o={column}", f"?o=-{column}"):
        assert len(cells(root.get(pages.changelist(query=order)), "name")) == 3


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({}, "● Active"),
        ({"running_run": 1}, "▶ Running"),
        ({"paused_since": NOW}, "■ Paused"),
        (
            {"paused_since": NOW, "paused_until": NOW + timedelta(hours=1)},
            f"◧ Paused until {local_time('2026-11-28 11:00:30')}",
        ),
        ({"enabled": False}, "□ Disabled in its declaration"),
        ({"next_run_at": NOW - timedelta(hours=1)}, "▲ Overdue"),
        ({"broken_reason": "no module named shop"}, "✖ Broken no module named shop"),
    ],
)
def test_each_status_has_a_word_and_a_shape(
    root: Client, fields: dict[str, Any], word: str
) -> None:
    """P51."""
    rows.task(**fields)
    assert cells(root.get(pages.changelist()), "status") == [word]


def test_filters_and_search_narrow_the_list(root: Client) -> None:
    rows.task("paused", paused_since=NOW)
    rows.task("running", running_run=1, timezone="Europe/Berlin")
    rows.task("off", enabled=False, description="Counts the stock")

    def names(query: str) -> list[str]:
        return cells(root.get(pages.changelist(query=query)), "name")

    assert names("?status=paused") == ["paused"]
    assert names("?status=disabled") == ["off"]
    assert names("?status=running") == ["running"]
    assert names("?status=nonsense") == ["running", "off", "paused"]
    assert names("?enabled__exact=0") == ["off"]
    assert names("?timezone=Europe/Berlin") == ["running"]
    assert names("?q=stock") == ["off"]
    assert names("?q=unni") == ["running"]


def test_damaged_rows_are_broken_and_the_list_is_shown(root: Client) -> None:
    rows.task("a cron", cron="* * *")
    rows.task("b zone", timezone="Mars/Olympus")
    rows.task("c path", timezone="../../etc/passwd")
    rows.task("d declaration", declaration="nothing")
    rows.task("e fine")
    response = root.get(pages.changelist())
    found = cells(response, "status")
    assert [status.split()[1] for status in found] == ["Broken"] * 4 + ["Active"]
    assert "Invalid cron expression" in found[0]
    assert cells(response, "next_run")[:4] == ["-"] * 4


def test_tasks_of_another_deployment_are_not_shown(root: Client) -> None:
    rows.task("ours")
    theirs = rows.task("theirs", scheduler=rows.deployment("other"))
    assert cells(root.get(pages.changelist()), "name") == ["ours"]
    assert root.get(pages.page(theirs)).status_code == 302


@pytest.mark.parametrize("scheduler", [True, False])
def test_a_hundred_rows_take_twelve_queries_at_most(
    login: Login, django_assert_max_num_queries: Any, scheduler: bool
) -> None:
    """P52; session, user and permissions included, and the banner where nobody schedules not."""
    rows.instance(heartbeat_at=NOW if scheduler else NOW - timedelta(hours=1))
    banner = 0 if scheduler else 3
    for number in range(120):
        rows.task(f"task {number:03}", description="x", timezone="Europe/Berlin")
        rows.run(f"task {number:03}")
    client = login("view_scheduledtask", "run_scheduledtask")
    client.get(pages.changelist())
    with django_assert_max_num_queries(12 + banner + LIMITING) as queries:
        response = client.get(pages.changelist())
    assert len(cells(response, "name")) == 100
    ours = sum("declarative_cron" in query["sql"] for query in queries.captured_queries)
    assert ours <= 8 + banner


def test_a_retry_says_which_attempt_of_how_many_it_is(root: Client) -> None:
    retry = NOW + timedelta(minutes=5)
    rows.task("a fixed delay", pending_retry_until=retry, attempt=2)
    policy = {"retry": {"max_attempts": 5}, "dialect": "ojs"}
    rows.task(
        "b policy", pending_retry_until=retry, attempt=2, retry_delay=None, declaration=policy
    )
    found = cells(root.get(pages.changelist()), "pending_retry")
    at = local_time("2026-11-28 10:05:30")
    assert found == [f"{at} attempt 3", f"{at} attempt 3 of 5"]


def test_tags_filter_the_list(root: Client) -> None:
    rows.task("a", declaration={"tags": ["nightly", "money"]})
    rows.task("b", declaration={"tags": ["nightly"]})
    rows.task("c", declaration={"tags": "torn"})
    assert cells(root.get(pages.changelist(query="?tag=nightly")), "name") == ["a", "b"]
    assert cells(root.get(pages.changelist(query="?tag=money")), "name") == ["a"]
    assert "?tag=money" in root.get(pages.changelist()).content.decode()


@pytest.mark.parametrize(
    "model", ["scheduledtask", "taskrun", "taskoverride", "schedulerinstance", "accesstoken"]
)
def test_a_table_keeps_its_roles_where_its_rows_are_cards(root: Client, model: str) -> None:
    rows.task()
    rows.run()
    rows.act()
    rows.instance()
    html = root.get(pages.changelist(model)).content.decode()
    [table] = re.findall(r"<table[^>]*result_list.*?</table>", html, re.DOTALL) or [""]
    if model == "accesstoken":
        assert table == ""
        return
    wanted = {"table": {"table"}, "thead": {"rowgroup"}, "tbody": {"rowgroup"}, "tr": {"row"}}
    wanted |= {"td": {"cell"}, "th": {"columnheader", "rowheader"}}
    for tag, roles in wanted.items():
        tags = re.findall(rf"<{tag}(?:\s[^>]*)?>", table)
        found = {role for each in tags for role in re.findall(r' role="(\w+)"', each)}
        assert tags and found == roles
        assert all(each.count(" role=") == 1 for each in tags)
