"""What a page costs does not grow with what it does not show: statements, and their plans."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.store import overview

from . import pages, rows
from .rows import NOW
from .test_views import address, days

Words = Callable[[Any], str]

RUNS, TASKS = TaskRun._meta.db_table, ScheduledTask._meta.db_table
DAY = timedelta(days=1)


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
    for number in range(8):
        rows.task(f"task {number}", running_run=None)
    seeds = [rows.run(f"task {number}", outcome) for number, outcome in enumerate(OUTCOMES)]
    copies = []
    for minutes in range(1, 200):
        for seed in seeds:
            earlier = {
                name: getattr(seed, name) - timedelta(minutes=7 * minutes)
                for name in ("scheduled_for", "started_at", "finished_at")
            }
            same = {"scheduler": seed.scheduler, "task_name": seed.task_name, "attempt": 1}
            kind = {"outcome": seed.outcome if minutes % 50 == 0 else "succeeded", "reason": "due"}
            copies.append(TaskRun(**same, **kind, **earlier))
    TaskRun.objects.bulk_create(copies)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")


OUTCOMES = ("failed", "timed_out", *("succeeded",) * 6)

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


def test_the_list_takes_ten_queries_however_many_tasks_there_are(root: Client) -> None:
    rows.instance()
    counts: list[int] = []
    # The first page that a process shows also reads what it then keeps, such as content types.
    assert root.get(pages.changelist()).status_code == 200
    for size in (1, 40):
        for number in range(len(counts), size):
            rows.run(rows.task(f"task {number}", running_run=None).name, "failed")
        with CaptureQueriesContext(connection) as captured:
            assert root.get(pages.changelist()).status_code == 200
        # PostgreSQL is told the limit of time by a statement of its own.
        counts.append(sum(each["sql"].startswith("SELECT") for each in captured))
    assert counts[0] == counts[1] <= 10


def test_the_page_of_a_running_task_takes_twelve_queries_with_all_its_buttons(root: Client) -> None:
    rows.instance()
    run = rows.run(outcome="running", finished_at=None)
    url = pages.page(rows.task(running_run=run.pk))
    # The first page that a process shows also reads what it then keeps, such as content types.
    assert root.get(url).status_code == 200
    with CaptureQueriesContext(connection) as captured:
        shown = root.get(url)
    assert [each["key"] for each in shown.context["buttons"]] == ["run", "pause", "skip_next"]
    assert sum(each["sql"].startswith("SELECT") for each in captured) <= 12


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


def test_a_search_finds_runs_by_the_names_of_tasks(root: Client, text: Words) -> None:
    rows.task("count stock")
    for name in ("count stock", "count money"):
        rows.run(name)
    found = {
        asked: [name for name in ("count stock", "count money") if f"{name} 2026" in shown]
        for asked in ("ount", "stock", "stock count", "count money", "money")
        for shown in (text(root.get(pages.changelist("taskrun", f"?q={asked}"))),)
    }
    # Who is declared no longer is found by the whole name.
    assert found == {
        "ount": ["count stock"],
        "stock": ["count stock"],
        "stock count": ["count stock"],
        "count money": ["count money"],
        "money": [],
    }


def test_a_search_that_many_tasks_match_finds_the_same(
    root: Client, monkeypatch: Any, text: Words
) -> None:
    monkeypatch.setattr("django_declarative_cron.admin.runs._NAMES", 1)
    for name in ("count stock", "count money", "other"):
        rows.task(name)
        rows.run(name)
    shown = text(root.get(pages.changelist("taskrun", "?q=count")))
    assert "count stock 2026" in shown and "count money 2026" in shown
    assert "other 2026" not in shown
