"""Queries of pages: their number, their plans, and a database that cannot answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.contrib.admin import ShowFacets, site
from django.db import OperationalError, connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from django_declarative_cron.admin.base import ReadOnlyModelAdmin
from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.store import database, overview

from . import pages, rows
from .conftest import Login
from .rows import NOW
from .test_tasks import cells
from .test_views import address, days

RUNS, TASKS = TaskRun._meta.db_table, ScheduledTask._meta.db_table
DAY = timedelta(days=1)
TASKS_VIEW = "view_scheduledtask"


@pytest.fixture(autouse=True)
def _as_never_counted(db: None) -> None:
    """Let no plan depend on how many rows of other tests PostgreSQL has counted, or keeps dead."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {RUNS}, {TASKS} CASCADE")


def statements(client: Client, url: str) -> list[str]:
    """Give the statements of a page that read runs or tasks."""
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200
    said = [query["sql"] for query in captured.captured_queries]
    return [sql for sql in said if RUNS in sql or TASKS in sql]


def queries(client: Client, url: str) -> tuple[Any, list[str]]:
    """Return a page and its queries; PostgreSQL sets the limit of time with other statements."""
    # The first page that a process shows also reads what it then keeps, such as content types.
    assert client.get(url).status_code == 200
    with CaptureQueriesContext(connection) as captured:
        response = client.get(url)
    found = [query["sql"] for query in captured.captured_queries]
    return response, [sql for sql in found if sql.startswith("SELECT")]


def plans(said: list[str]) -> str:
    how = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    found = []
    with connection.cursor() as cursor:
        for sql in said:
            cursor.execute(f"{how} {sql}")
            found += [" ".join(map(str, row)) for row in cursor.fetchall()]
    return "\n".join(found)


def long_history() -> None:
    """Store the runs of a few tasks, and let the database count them."""
    outcomes = ("failed", "timed_out", *("succeeded",) * 6)
    seeds = [(rows.task(f"task {n}"), outcome) for n, outcome in enumerate(outcomes)]
    copies = []
    for minutes in range(200):
        for task, outcome in seeds:
            at = NOW - timedelta(minutes=7 * minutes)
            copies.append(
                TaskRun(
                    scheduler=task.scheduler,
                    task_name=task.name,
                    outcome=outcome if minutes % 50 == 0 else "succeeded",
                    reason="due",
                    attempt=1,
                    scheduled_for=at,
                    started_at=at,
                    finished_at=at + timedelta(minutes=2),
                )
            )
    TaskRun.objects.bulk_create(reversed(copies))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")


BY_NAME, BY_OUTCOME = "ddc_run_history", "ddc_run_outcome"


@pytest.mark.skipif(connection.vendor == "mysql", reason="its plans are told by its statistics")
@pytest.mark.parametrize(
    ("url", "index"),
    [
        (pages.changelist, BY_NAME),
        (lambda: pages.changelist(query="?last=failed"), BY_NAME),
        (lambda: pages.changelist(query="?failed=day"), BY_OUTCOME),
        (lambda: pages.page(ScheduledTask.objects.get(name="task 3")), BY_NAME),
        (lambda: address("calendar"), BY_OUTCOME),
    ],
)
def test_a_page_finds_runs_by_an_index(root: Client, url: Callable[[], str], index: str) -> None:
    long_history()
    said = statements(root, url())
    plan = plans([sql for sql in said if sql.startswith("SELECT") and RUNS in sql])
    assert index in plan


@pytest.mark.parametrize("scheduler", [True, False])
def test_a_list_of_a_hundred_tasks_takes_ten_queries(login: Login, scheduler: bool) -> None:
    """P52; session, user and permissions included, the banner without a scheduler is not."""
    rows.instance(heartbeat_at=NOW if scheduler else NOW - timedelta(hours=1))
    for number in range(120):
        rows.task(f"task {number:03}", description="x", timezone="Europe/Berlin")
        rows.run(f"task {number:03}", "failed" if number % 2 else "succeeded")
    response, found = queries(login(TASKS_VIEW, "run_scheduledtask"), pages.changelist())
    assert len(cells(response, "name")) == 100
    banner = 0 if scheduler else 3
    assert len(found) <= 10 + banner
    assert sum("declarative_cron" in sql for sql in found) <= 6 + banner


def test_a_list_of_a_hundred_schedulers_takes_eight_queries(root: Client) -> None:
    for number in range(110):
        one = rows.instance(id=UUID(int=number))
        rows.run(f"t{number}", "running", instance=one, running_slot=f"t{number}")
    response, found = queries(root, pages.changelist("schedulerinstance"))
    assert len(cells(response, "process")) == 100
    assert len(found) <= 8
    assert sum("declarative_cron" in sql for sql in found) <= 4


def test_the_page_of_a_task_takes_fourteen_queries_at_most(login: Login, root: Client) -> None:
    host = rows.instance()
    retried = rows.task(pending_retry_until=NOW, paused_since=NOW)
    for minute in range(60):
        rows.run(outcome="failed", scheduled_for=NOW + timedelta(minutes=minute), instance=host)
        rows.act()
    assert len(queries(login(TASKS_VIEW, "view_taskrun"), pages.page(retried))[1]) <= 14
    run = rows.run("busy", "running", finished_at=None)
    shown, found = queries(root, pages.page(rows.task("busy", running_run=run.pk)))
    assert [each["key"] for each in shown.context["buttons"]] == ["run", "pause", "skip_next"]
    assert len(found) <= 12


def test_the_runs_of_tasks_before_the_page_are_not_asked_for(root: Client) -> None:
    for number in range(101):
        rows.task(f"task {number:03}")
    said = statements(root, pages.changelist(query="?p=2"))
    [skipping] = [sql for sql in said if "OFFSET 100" in sql]
    assert RUNS not in skipping


@pytest.mark.parametrize("page", ["?day=2026-11-28", ""])
def test_a_calendar_takes_as_many_statements_for_many_tasks(root: Client, page: str) -> None:
    def declare(number: int, **fields: Any) -> None:
        rows.task(f"task {number}", registered_at=NOW - DAY, **fields)
        rows.run(f"task {number}")

    declare(0)
    first = statements(root, address("calendar", page))
    for number in range(1, 6):
        declare(number, skip_at=NOW + timedelta(hours=number))
        declare(number + 10, cron=f"{number} * * * *", declaration={"spread": 60.0})
    assert len(statements(root, address("calendar", page))) == len(first)


def test_a_day_with_more_runs_than_are_counted_says_so(root: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(overview, "MOST_IN_DAY", 3)
    monkeypatch.setattr("django_declarative_cron.admin.calendar.MOST_IN_DAY", 3)
    for hours in range(4):
        rows.run(scheduled_for=NOW - timedelta(hours=hours))
    rows.run(outcome="failed", scheduled_for=NOW)
    assert days(root.get(address("calendar")))["2026-11-28"] == "28 ✔ 3+ succeeded ✖ 1 failed"


@pytest.mark.parametrize("most", [1000, 0], ids=["by their names", "by a subquery"])
def test_a_search_finds_runs_by_the_names_of_tasks(
    root: Client, monkeypatch: Any, most: int
) -> None:
    monkeypatch.setattr("django_declarative_cron.admin.runs._NAMES", most)
    rows.task("count stock")
    for name in ("count stock", "count money"):
        rows.run(name)
    # A removed task is found by its whole name.
    assert {
        asked: cells(root.get(pages.changelist("taskrun", f"?q={asked}")), "task_name")
        for asked in ("ount", "stock", "stock count", "count money", "money")
    } == {
        **{key: ["count stock"] for key in ("ount", "stock", "stock count")},
        "count money": ["count money"],
        "money": [],
    }


MODELS = ("scheduledtask", "taskrun", "taskoverride", "schedulerinstance", "accesstoken")


def refuse(*args: Any, **kwargs: Any) -> Any:
    raise OperationalError("the server is gone")


@pytest.mark.parametrize("model", MODELS)
def test_each_list_says_that_the_tables_are_missing(
    root: Client, model: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr(database, "_are_there", lambda using: False)
    monkeypatch.setattr(ReadOnlyModelAdmin, "get_queryset", refuse)
    page = root.get(pages.changelist(model))
    assert page.status_code == 503
    assert "run `python manage.py migrate` first." in page.content.decode()
    assert "the server is gone" not in page.content.decode()


@pytest.mark.parametrize("name", ["calendar", "expression", "timeline"])
def test_the_other_pages_say_it_too(root: Client, name: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(database, "flaw_of_tables", refuse)
    page_admin = site.get_model_admin(ScheduledTask)
    view = next(u.callback for u in page_admin.urls if u.name and u.name.endswith(f"_{name}"))
    monkeypatch.setattr(page_admin.admin_site, "has_permission", refuse)
    page = view(RequestFactory().get(reverse(f"admin:{pages.APP}_scheduledtask_{name}")))
    assert page.status_code == 503
    assert "The database does not answer." in page.content.decode()


def test_another_error_of_the_database_is_an_error(root: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(ReadOnlyModelAdmin, "get_queryset", refuse)
    with pytest.raises(OperationalError):
        root.get(pages.changelist())


@pytest.mark.skipif(connection.vendor != "postgresql", reason="no limit for a statement")
def test_a_page_that_takes_too_long_is_stopped(root: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(database, "PAGE", 1)
    monkeypatch.setattr(ReadOnlyModelAdmin, "get_queryset", lambda *_: _sleeping())
    page = root.get(pages.changelist("taskrun"))
    assert page.status_code == 503
    assert "took longer than 1 seconds" in page.content.decode()
    # The connection, and the transaction around the page, go on.
    assert TaskRun.objects.count() == 0


def _sleeping() -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(3)")
    return TaskRun.objects.all()


@pytest.mark.parametrize("model", MODELS)
def test_no_list_offers_to_count_the_rows_of_each_choice(root: Client, model: str) -> None:
    rows.run()
    page = root.get(pages.changelist(model), {"_facets": "True"})
    assert "changelist-filter-extra-actions" not in page.content.decode()
    page_admin = site.get_model_admin(apps.get_model(pages.APP, model))
    assert page_admin.show_facets is ShowFacets.NEVER


def test_an_order_that_no_list_of_a_history_offers_is_not_taken(root: Client) -> None:
    asked = " ".join(statements(root, pages.changelist("taskrun", "?o=2")))
    assert "task_name ASC" not in asked.replace('"', "").replace("`", "")
