"""The page of one run."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from django_declarative_cron.admin.runs import project_frames
from django_declarative_cron.models import RegistrationSet, ScheduledTask, TaskOverride
from django_declarative_cron.store.overview import day_of

from ..timezones import local_time
from . import pages, rows
from .conftest import Login
from .rows import NOW

Words = Callable[[Any], str]

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
    assert [(frame.file, frame.line, frame.name, frame.code) for frame in found] == [
        ("/srv/shop/shop/bank.py", 61, "daily_rates", "raise BankDown(503)"),
        (
            "/srv/shop/shop/rates.py",
            24,
            "fetch_rates",
            'answer = bank.daily_rates(currency="EUR")',
        ),
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


def test_the_page_shows_lag_result_frames_and_log(root: Client, text: Words) -> None:
    at = NOW.replace(second=0)
    run = rows.run(
        outcome="failed",
        started_at=at + timedelta(seconds=3),
        traceback=TRACEBACK,
        log="fetching\nfailed",
        output="printed",
        result={"sent": 3, "api_key": "s3cret"},
    )
    response = root.get(pages.page(run))
    shown = text(response)
    assert "Lag: 3 s" in shown
    assert '"sent": 3' in shown
    assert "s3cret" not in shown
    assert "Where it failed /srv/shop/shop/bank.py:61 daily_rates" in shown
    assert "End of the log fetching failed End of the output printed" in shown
    html = response.content.decode()
    assert html.index("Where it failed") < html.index("Traceback (most recent call last)")


@pytest.mark.parametrize("is_found", [False, True])
def test_a_run_of_a_dead_process_is_interrupted_on_every_page(
    root: Client, text: Words, is_found: bool
) -> None:
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


def test_the_filter_by_outcome_agrees_with_the_column(root: Client) -> None:
    """A run whose process is gone is interrupted before a scheduler has recorded it."""
    dead, alive = rows.instance(heartbeat_at=NOW - timedelta(minutes=6)), rows.instance()
    for name, instance in (("dead", dead), ("alive", alive)):
        rows.run(name, "running", finished_at=None, instance=instance, running_slot=name)
    rows.run("recorded", "interrupted")
    rows.run("good")

    def names(outcome: str) -> set[str]:
        html = root.get(pages.changelist("taskrun", f"?outcome={outcome}")).content.decode()
        return set(
            re.findall(r'class="field-task_name[^"]*"><a[^>]*><span[^>]*>([^<]*)</span></a>', html)
        )

    assert names("running") == {"alive"}
    assert names("interrupted") == {"dead", "recorded"}
    assert names("succeeded") == {"good"}
    assert names("nonsense") == {"dead", "alive", "recorded", "good"}


def test_the_attempts_at_its_occurrence_are_a_chain(root: Client, text: Words) -> None:
    at = NOW.replace(second=0)
    first = rows.run(outcome="failed", finished_at=at + timedelta(seconds=1))
    assert "Attempts at this occurrence" not in text(root.get(pages.page(first)))
    rows.run(attempt=2, reason="retry", scheduled_for=at, started_at=at + timedelta(seconds=31))
    shown = text(root.get(pages.page(first)))
    assert f"2 ✔ succeeded {local_time('2026-11-28 10:00:31')} 30 s" in shown


def test_a_run_of_a_task_that_is_gone_cannot_be_run_again(root: Client, text: Words) -> None:
    response = root.get(pages.page(rows.run()))
    assert "ddc-act-run" not in response.content.decode()
    assert "The task was removed; its history is kept." in text(response)


def test_the_page_says_when_the_task_of_a_run_was_removed(root: Client, text: Words) -> None:
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
    run = rows.run()
    assert root.get(pages.page(run, site="operations")).status_code == 200


def test_a_run_in_progress_is_asked_to_end_and_that_is_written_down(login: Login) -> None:
    rows.task()
    run = rows.run(outcome="running", finished_at=None, running_slot="digest")
    client = login("view_taskrun", "cancel_taskrun")
    page = client.get(pages.page(run)).content.decode()
    address = f"{pages.page(run).removesuffix('change/')}cancel/"
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


def test_a_run_that_waits_is_ended_and_that_is_written_down(root: Client, text: Words) -> None:
    task = rows.task()
    run = rows.run(outcome="waiting", started_at=None, finished_at=None, waits_in="slow", job={})
    ScheduledTask.objects.filter(pk=task.pk).update(running_run=run.pk)
    address = f"{pages.page(run).removesuffix('change/')}cancel/"
    assert f'href="{address}"' in root.get(pages.page(run)).content.decode()
    assert "Ends immediately, because it has not started." in text(root.get(address))
    shown = text(root.post(address, {"note": "no need"}, follow=True))
    assert "The run had not started. It was cancelled." in shown
    run.refresh_from_db()
    assert (run.outcome, run.waits_in) == ("cancelled", None)
    assert TaskOverride.objects.get().note == "no need"


def test_what_has_ended_is_not_asked_to(root: Client, text: Words) -> None:
    run = rows.run()
    assert "ddc-act-cancel" not in root.get(pages.page(run)).content.decode()
    address = f"{pages.page(run).removesuffix('change/')}cancel/"
    shown = text(root.post(address, {"note": ""}, follow=True))
    assert "The run has ended, or its cancellation was requested before." in shown
    assert not TaskOverride.objects.exists()
    assert root.get(address.replace(str(run.pk), str(10**30))).status_code == 404
