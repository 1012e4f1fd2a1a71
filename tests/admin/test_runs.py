"""The list of runs, and the page of one run."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from django_declarative_cron.admin import base, filters
from django_declarative_cron.admin.runs import project_frames
from django_declarative_cron.models import RegistrationSet, ScheduledTask, TaskOverride, TaskRun
from django_declarative_cron.store.overview import day_of

from ..timezones import local_time
from . import pages, rows
from .conftest import LIMITING, Login
from .pages import text
from .rows import NOW

# --- the list -------------------------------------------------------------------


def names(client: Client, query: str = "") -> list[str]:
    html = client.get(pages.changelist("taskrun", query)).content.decode()
    return re.findall(r'class="field-task_name[^"]*"><a[^>]*><span[^>]*>([^<]*)</span></a>', html)


def test_runs_are_listed_newest_first_and_narrowed(root: Client) -> None:
    rows.run("a")
    rows.run("b", outcome="failed", reason="retry")
    rows.run("a", outcome="missed", reason="no_scheduler", attempt=0)
    assert names(root) == ["a", "b", "a"]
    assert names(root, "?outcome__exact=failed") == ["b"]
    assert names(root, "?reason=no_scheduler") == ["a"]
    assert names(root, "?q=b") == ["b"]
    assert names(root, "?task_name__exact=a") == ["a", "a"]


def test_the_run_history_is_counted_to_a_bound_and_sorted_by_key_only(
    root: Client, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    monkeypatch.setattr(base, "DEEPEST_ROW", 5)
    rows.instance()
    for number in range(8):
        rows.run("a", scheduled_for=NOW + timedelta(minutes=number))
    root.get(pages.changelist("taskrun"))
    with django_assert_max_num_queries(5 + LIMITING) as queries:
        response = root.get(pages.changelist("taskrun", "?o=2"))
    assert response.context["cl"].result_count == 5
    asked = [q["sql"].replace("`", '"') for q in queries.captured_queries if "taskrun" in q["sql"]]
    counts = [sql for sql in asked if "COUNT" in sql]
    assert counts and all("LIMIT 5" in sql for sql in counts)
    # With an order or an instance beside it, a count reads far more than the index.
    assert not any(" ORDER BY " in sql or "schedulerinstance" in sql for sql in counts)
    assert all(" ORDER BY " not in sql or 'taskrun"."id" DESC' in sql for sql in asked)


@pytest.mark.parametrize(("language", "groups"), [("en", False), ("en", True), ("de", True)])
def test_a_history_that_was_not_counted_to_its_end_says_so(
    root: Client, monkeypatch: Any, settings: Any, language: str, groups: bool
) -> None:
    settings.LANGUAGE_CODE, settings.USE_THOUSAND_SEPARATOR = language, groups
    monkeypatch.setattr(base, "DEEPEST_ROW", 1000)
    rows.task("a")
    seed = rows.run("a")
    same = {"scheduler": seed.scheduler, "task_name": "a", "reason": "due", "attempt": 1}
    of_an_instant = {"scheduled_for": seed.scheduled_for, "outcome": "succeeded"}
    runs, results = {"en": ("runs", "results"), "de": ("Läufe", "Ergebnisse")}[language]
    for most, number in ((999, "999"), (1001, "1,000+" if language == "en" else "1.000+")):
        missing = most - TaskRun.objects.count()
        TaskRun.objects.bulk_create(TaskRun(**same, **of_an_instant) for _ in range(missing))
        assert f" {number} {runs}" in text(root.get(pages.changelist("taskrun")))
        assert f" {number} {results}" in text(root.get(pages.changelist("taskrun", "?q=a")))


def test_a_reason_is_looked_for_among_the_newest_runs(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "_NEWEST", 2)
    rows.run("old", reason="boot")
    rows.run("a", outcome="missed", reason="no_scheduler", attempt=0)
    for name, reason in (("b", "boot"), ("c", "due")):
        rows.run(name, reason=reason)
    found = [names(root, f"?reason={reason}") for reason in ("boot", "due", "no_scheduler")]
    assert found == [["b"], ["c"], []]
    monkeypatch.setattr(filters, "_NEWEST", 4)
    found = [names(root, f"?reason={reason}") for reason in ("boot", "no_scheduler")]
    assert found == [["b", "old"], ["a"]]
    assert "By reason, in the newest 100,000 rows" in text(root.get(pages.changelist("taskrun")))


def test_the_filter_by_outcome_agrees_with_the_column(root: Client) -> None:
    """A run whose process is gone is interrupted before a scheduler has recorded it."""
    dead, alive = rows.instance(heartbeat_at=NOW - timedelta(minutes=6)), rows.instance()
    for name, instance in (("dead", dead), ("alive", alive)):
        rows.run(name, "running", finished_at=None, instance=instance, running_slot=name)
    rows.run("recorded", "interrupted")
    rows.run("good")
    assert names(root, "?outcome=running") == ["alive"]
    assert names(root, "?outcome=interrupted") == ["recorded", "dead"]
    assert names(root, "?outcome=succeeded") == ["good"]
    assert names(root, "?outcome=nonsense") == ["good", "recorded", "alive", "dead"]


# --- the page -------------------------------------------------------------------


TRACEBACK = """Traceback (most recent call last):
  File "/venv/lib/python3.13/site-packages/django_declarative_cron/runtime/work.py", line 9, in call
    work.target(*work.args)
  File "/srv/shop/shop/rates.py", line 24, in fetch_rates
    answer = bank.daily_rates(currency="EUR")
             ^^^^^^^^^^^^^^^^
  File "/srv/shop/shop/bank.py", line 61, in daily_rates
    raise BankDown(503)
shop.bank.BankDown: 503
"""


def test_the_frames_of_the_project_come_first_the_failing_one_on_top() -> None:
    found = project_frames(TRACEBACK)
    call = 'answer = bank.daily_rates(currency="EUR")'
    assert found == [
        ("/srv/shop/shop/bank.py", 61, "daily_rates", "raise BankDown(503)"),
        ("/srv/shop/shop/rates.py", 24, "fetch_rates", call),
    ]


@pytest.mark.parametrize(
    ("traceback", "number"),
    [
        ("", 0),
        ("no traceback at all", 0),
        ('  File "<string>", line 1, in <module>', 0),
        ('  File "C:\\\\venv\\\\lib\\\\site-packages\\\\x.py", line 1, in f\n    boom()', 0),
        ('  File "/srv/a.py", line 99999999999999999999999, in f', 1),
        ('  | File "/srv/a.py", line 3, in f\n  |     boom()', 1),
        ('  File "/srv/a.py", line 1, in f\n' * 500, 20),
    ],
)
def test_what_is_no_usual_traceback_is_read_as_far_as_it_goes(traceback: str, number: int) -> None:
    assert len(project_frames(traceback)) == number


def test_the_page_shows_lag_result_frames_traceback_log_and_its_task(root: Client) -> None:
    task = rows.task()
    run = rows.run(
        outcome="failed",
        started_at=NOW.replace(second=3),
        error="BankDown: a < b",
        traceback=TRACEBACK.replace("503", "a < b"),
        log="fetching\nfailed",
        output="printed",
        result={"sent": 3, "api_key": "s3cret"},
        instance=rows.instance(),
    )
    response = root.get(pages.page(run))
    shown, html = text(response), response.content.decode()
    assert "✖ failed" in shown
    assert "worker:4711" in shown
    assert "Lag: 3 s" in shown
    assert '"sent": 3' in shown
    assert "s3cret" not in shown
    assert "Where it failed /srv/shop/shop/bank.py:61 daily_rates" in shown
    assert "End of the log fetching failed End of the output printed" in shown
    assert html.index("Where it failed") < html.index("Traceback (most recent call last)")
    assert re.search(r"<pre[^>]*>Traceback \(most [^<]*shop.bank.BankDown: a &lt; b\n</pre>", html)
    assert pages.page(task) in html


@pytest.mark.parametrize("is_found", [False, True])
def test_a_run_of_a_dead_process_is_interrupted_on_every_page(root: Client, is_found: bool) -> None:
    began, heard = NOW - timedelta(minutes=10), NOW - timedelta(minutes=6)
    dead = rows.instance(heartbeat_at=heard)
    found = {"outcome": "interrupted", "finished_at": NOW} if is_found else {"outcome": "running"}
    found.setdefault("finished_at", None)
    run = rows.run(
        started_at=began,
        instance=dead,
        running_slot=None if is_found else "digest",
        detail={"alive_until": heard.isoformat()} if is_found else None,
        **found,
    )
    task = rows.task(running_run=None if is_found else run.pk)
    addresses = (pages.page(run), pages.page(task), pages.changelist("taskrun"))
    for shown in (text(root.get(address)) for address in addresses):
        assert "↯ interrupted" in shown
        assert "▶ running" not in shown
        assert "4 min" in shown
        assert "10 min" not in shown
    [bar] = day_of(task.scheduler_id, ["digest"], began, NOW, NOW)["digest"]
    assert (bar.outcome, bar.end) == ("interrupted", heard)


def test_the_attempts_at_its_occurrence_are_a_chain(root: Client) -> None:
    at = NOW.replace(second=0)
    first = rows.run(outcome="failed", finished_at=at + timedelta(seconds=1))
    assert "Attempts at this occurrence" not in text(root.get(pages.page(first)))
    rows.run(attempt=2, reason="retry", scheduled_for=at, started_at=at + timedelta(seconds=31))
    shown = text(root.get(pages.page(first)))
    assert f"2 ✔ succeeded {local_time('2026-11-28 10:00:31')} 30 s" in shown


def test_a_run_outlives_its_task_and_cannot_be_run_again(root: Client) -> None:
    response = root.get(pages.page(rows.run(traceback="")))
    assert "The task was removed; its history is kept." in text(response)
    for absent in ("ddc-act-run", "ddc-task", "ddc-traceback"):
        assert absent not in response.content.decode()


def test_the_page_says_when_the_task_of_a_run_was_removed(root: Client) -> None:
    run, removed = rows.run(), NOW - timedelta(minutes=3)
    for generation, (at, tasks) in enumerate(
        [(NOW - timedelta(days=1), [{"name": "digest"}]), (removed, []), (NOW, [])]
    ):
        RegistrationSet.objects.create(
            scheduler=run.scheduler, generation=generation, registered_at=at, tasks=tasks
        )
    said = f"The task was removed at {local_time('2026-11-28 09:57:30')}; its history is kept."
    assert said in text(root.get(pages.page(run)))


def test_the_page_is_there_on_a_site_without_pages_of_tasks(root: Client) -> None:
    rows.task()
    html = root.get(pages.page(rows.run(), site="runs")).content.decode()
    assert "ddc-act-run" not in html and "ddc-task" not in html


def cancel(run: TaskRun) -> str:
    return f"{pages.page(run).removesuffix('change/')}cancel/"


def test_a_run_in_progress_is_asked_to_end_and_that_is_written_down(login: Login) -> None:
    rows.task()
    run = rows.run(outcome="running", finished_at=None, running_slot="digest")
    client = login("view_taskrun", "cancel_taskrun")
    page = client.get(pages.page(run)).content.decode()
    address = cancel(run)
    assert f'href="{address}"' in page
    assert "Cancel this run?" in client.get(address).content.decode()
    run.refresh_from_db()
    assert run.cancel_requested_at is None
    assert client.post(address, {"note": "too long"}).status_code == 302
    run.refresh_from_db()
    assert run.cancel_requested_at == NOW
    act = TaskOverride.objects.get()
    assert (act.kind, act.note, act.task_name) == ("cancel", "too long", "digest")
    assert LogEntry.objects.get().change_message == "Cancel run: too long"
    client.post(address, {"note": "again"})
    assert TaskOverride.objects.count() == 1


def test_a_run_that_waits_is_ended_and_that_is_written_down(root: Client) -> None:
    task = rows.task()
    run = rows.run(outcome="waiting", started_at=None, finished_at=None, waits_in="slow", job={})
    ScheduledTask.objects.filter(pk=task.pk).update(running_run=run.pk)
    address = cancel(run)
    assert f'href="{address}"' in root.get(pages.page(run)).content.decode()
    assert "Ends immediately, because it has not started." in text(root.get(address))
    shown = text(root.post(address, {"note": "no need"}, follow=True))
    assert "The run had not started. It was cancelled." in shown
    run.refresh_from_db()
    assert (run.outcome, run.waits_in) == ("cancelled", None)
    assert TaskOverride.objects.get().note == "no need"


def test_what_has_ended_is_not_asked_to(root: Client) -> None:
    run = rows.run()
    assert "ddc-act-cancel" not in root.get(pages.page(run)).content.decode()
    address = cancel(run)
    shown = text(root.post(address, {"note": ""}, follow=True))
    assert "The run has ended, or its cancellation was requested before." in shown
    assert not TaskOverride.objects.exists()
    assert root.get(address.replace(str(run.pk), str(10**30))).status_code == 404
