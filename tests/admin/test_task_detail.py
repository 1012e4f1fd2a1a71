"""The page of one task."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client

from django_declarative_cron.admin.badges import occurrence, relative
from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.testing import ManualClock

from ..timezones import local_time
from . import pages, rows
from .pages import text
from .rows import NOW

HOUR = timedelta(hours=1)


def table(response: Any, heading: str) -> list[list[str]]:
    html = response.content.decode()
    found = re.search(rf'aria-labelledby="ddc-{heading}".*?</table>', html, re.DOTALL)
    assert found
    lines = re.findall(r"<tr>(.*?)</tr>", found[0].partition("<tbody>")[2], re.DOTALL)
    return [
        [
            " ".join(re.sub(r"<[^>]+>", " ", cell).split())
            for cell in re.findall(r"<t[dh].*?</t[dh]>", line, re.DOTALL)
        ]
        for line in lines
    ]


def test_the_declaration_says_where_it_comes_from_and_cannot_be_edited(root: Client) -> None:
    """P44."""
    task = rows.task(
        description="Sends what was sold",
        declaration={
            "args": [{"site": 7, "api_key": "hush"}],
            "overlap_policy": "skip",
            "runner": "process",
        },
    )
    response = root.get(pages.page(task))
    shown = text(response)
    assert "Declared in settings.SCHEDULED_TASKS" in shown
    assert "Sends what was sold" in shown
    assert "shop.tasks.send_digests" in shown
    assert "5 min" in shown
    assert '"overlap_policy": "skip"' in shown
    assert '"runner": "process"' in shown
    assert '"site": 7' in shown
    assert "hush" not in shown
    form = response.content.decode().partition('id="scheduledtask_form"')[2].partition("</form>")[0]
    assert re.findall(r"<(?:textarea|select|input(?! type=\"hidden\"))[^>]*>", form) == []


@pytest.mark.parametrize("project", ["UTC", "Asia/Tokyo", "Europe/London"])
def test_the_next_ten_occurrences_stand_in_all_zones_that_differ(
    root: Client, settings: Any, project: str
) -> None:
    settings.TIME_ZONE = project
    task = rows.task(cron="30 9 * * *", timezone="Asia/Tokyo")
    response = root.get(pages.page(task))
    found = table(response, "upcoming")
    assert len(found) == 10
    mine = ["2026-11-29 00:30 Europe/London"] if project == "Europe/London" else []
    in_zones = ["2026-11-29 09:30 Asia/Tokyo", *mine, "2026-11-29 00:30 UTC"]
    assert found[0] == [*in_zones, "in 14 h", ""]
    assert ("Your time zone" in text(response)) == bool(mine)


def test_what_the_clocks_do_is_remarked(root: Client, clock: ManualClock, settings: Any) -> None:
    settings.TIME_ZONE = "UTC"
    berlin = {"timezone": "Europe/Berlin", "next_run_at": None}
    spring = rows.task("spring", cron="30 2 * 3 0", **berlin)
    assert "2027-03-28 02:30 does not exist" in text(root.get(pages.page(spring)))
    autumn = rows.task("autumn", cron="30 2 * 10 0", **berlin)
    assert "happens twice, only the first counts" in text(root.get(pages.page(autumn)))
    clock.leap(datetime(2027, 3, 27, 12, tzinfo=UTC))
    found = table(root.get(pages.page(rows.task(cron="30 9 * * *", **berlin))), "upcoming")
    change = "clock change: UTC+01:00 → UTC+02:00"
    assert found[0][1:] == ["2027-03-28 07:30 UTC", "in 19 h", change]
    assert [line[-1] for line in found[1:]] == [""] * 9


def test_which_of_two_occurrences_it_is_stands_where_the_clocks_show_two() -> None:
    first, zone = datetime(2026, 10, 25, 0, 30, tzinfo=UTC), ZoneInfo("Europe/Berlin")
    shown = [str(occurrence(first + timedelta(minutes=30 * n), zone)) for n in range(4)]
    assert [re.sub(r"<[^>]+>", "", each) for each in shown] == [
        "2026-10-25 02:30 CEST Europe/Berlin",
        "2026-10-25 02:00 CET Europe/Berlin",
        "2026-10-25 02:30 CET Europe/Berlin",
        "2026-10-25 03:00 Europe/Berlin",
    ]


def test_elapsed_time_counts_not_the_hands_of_the_clock() -> None:
    """P17: yesterday at one is 23 hours ago on the day the clock moved."""
    at_one = datetime(2027, 3, 14, 8, tzinfo=UTC)
    assert relative(at_one, datetime(2027, 3, 15, 7, tzinfo=UTC)) == "23 h ago"


def test_a_pending_retry_shows_the_error_that_caused_it(root: Client) -> None:
    task = rows.task(pending_retry_until=NOW + timedelta(minutes=5), failures=3)
    failed = rows.run(outcome="failed", error="ValueError: no such column\nand more")
    for minute in range(60):
        rows.run(outcome="skipped", scheduled_for=NOW + timedelta(minutes=minute), attempt=0)
    response = root.get(pages.page(task))
    assert f"next run {local_time('2026-11-28 10:05:30')}" in text(response)
    assert "failures in a row 3" in text(response)
    assert "cause ✖ failed ValueError: no such column" in text(response)
    assert pages.page(failed) in response.content.decode()


def test_a_pause_in_force_says_who_why_since_and_until(root: Client) -> None:
    two_hours = NOW + timedelta(hours=2)
    task = rows.task(
        paused_since=NOW, paused_until=two_hours, next_run_at=NOW.replace(hour=13, second=0)
    )
    rows.act(note="before", ended_at=NOW)
    pause = rows.act(note="supplier\nis moving", until=two_hours, author="grace")
    shown = text(root.get(pages.page(task)))
    since, until = local_time("2026-11-28 09:50:30"), local_time("2026-11-28 12:00:30")
    end = f"until {until} next run {local_time('2026-11-28 13:00')}"
    assert f"Paused by grace since {since} {end} note supplier is moving" in shown
    assert "the occurrences before the end of the pause will be skipped" in shown
    type(pause).objects.update(until=None)
    shown = text(root.get(pages.page(task)))
    assert f"Paused by grace since {since} until resumed" in shown
    assert "Paused: these occurrences will be skipped." in shown


def test_what_has_no_value_is_not_called_none(root: Client) -> None:
    """AD-01, on the pages of a task and of what never ran."""
    task = rows.task(next_run_at=None, declaration={})
    run = rows.run(outcome="missed", attempt=0, started_at=None, finished_at=None)
    for row in (task, run, rows.act(), rows.instance()):
        assert "None" not in text(root.get(pages.page(row))).replace("Actions in force: None", "")


def test_a_task_that_is_disabled_or_crashes_its_process_says_so(root: Client) -> None:
    task = rows.task(enabled=False, interruptions=2)
    shown = text(root.get(pages.page(task)))
    assert "Disabled by its declaration" in shown
    assert "Paused: these occurrences will be skipped." in shown
    assert "crashed" not in shown
    ScheduledTask.objects.update(interruptions=3)
    words = "The last 3 runs crashed the process that they ran in."
    assert words in text(root.get(pages.page(task)))


def test_what_people_did_is_told_newest_first(root: Client) -> None:
    task = rows.task()
    rows.act(kind="pause", note="stocktaking", until=NOW)
    rows.act(kind="resume", author="grace")
    rows.act("another task", kind="run")
    found = table(root.get(pages.page(task)), "actions")
    at, until = local_time("2026-11-28 09:50:30"), local_time("2026-11-28 10:00:30")
    assert found == [
        [at, "resumed", "grace", "", ""],
        [at, "paused", "ada", until, "stocktaking"],
    ]


def test_the_newest_runs_are_shown_first(root: Client) -> None:
    """P98."""
    task = rows.task()
    for minute in range(60):
        rows.run(scheduled_for=NOW + timedelta(minutes=minute))
    rows.run(
        outcome="failed", reason="retry", attempt=2, error="boom\ntrace", instance=rows.instance()
    )
    never = {"attempt": 0, "started_at": None, "finished_at": None}
    rows.run(outcome="missed", reason="no_scheduler", count=3, **never)
    rows.run("another task")
    found = table(root.get(pages.page(task)), "runs")
    ten, why = local_time("2026-11-28 10:00"), "no scheduler was running (3 occurrences)"
    assert len(found) == 20
    assert found[0] == ["○ missed", ten, "", "", "", why, "", ""]
    assert found[1] == ["✖ failed", ten, "2 min", "boom", "2", "retry", ten, "worker:4711"]


def test_tables_have_a_name_and_their_headings_a_scope(root: Client) -> None:
    task = rows.task()
    rows.run()
    rows.act()
    html = root.get(pages.page(task)).content.decode()
    ours = re.findall(r'<div class="ddc-scroll"([^>]*)>\s*<table>(.*?)</table>', html, re.DOTALL)
    assert len(ours) == 6
    for region, each in ours:
        assert re.search(r'aria-label(?:ledby)?="[^"]+"', region)
        assert "<th>" not in each


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"cron": "* * *"}, "Invalid cron expression"),
        ({"timezone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"declaration": ["nothing"]}, "list"),
        ({"broken_reason": "No module named 'shop'"}, "No module named"),
    ],
)
def test_a_damaged_row_is_shown_with_what_is_wrong(
    root: Client, fields: dict[str, Any], problem: str
) -> None:
    task = rows.task(**fields)
    response = root.get(pages.page(task))
    assert response.status_code == 200
    assert problem in text(response)


@pytest.mark.parametrize("value", ["soon", -5, 1e300, [1], {"a": None}])
def test_a_value_that_was_edited_by_hand_cannot_be_read(root: Client, value: Any) -> None:
    task = rows.task(declaration={"timeout": value})
    assert "Timeout: cannot be read" in text(root.get(pages.page(task)))
    keys = "spread catch_up_window exclude_calendars pause_after_failures overlap_policy retry gap"
    ScheduledTask.objects.update(declaration=dict.fromkeys([*keys.split(), "args", "tags"], value))
    assert root.get(pages.page(task)).status_code == 200


def test_names_and_texts_from_outside_are_escaped_everywhere(root: Client) -> None:
    evil = "<script>alert(1)</script>"
    task = rows.task(
        evil,
        description=evil,
        callback=evil,
        cron=evil,
        timezone=evil,
        broken_reason=evil,
        pending_retry_until=NOW,
        paused_since=NOW,
        declaration={"args": [evil], "options": {evil: evil}},
    )
    host = rows.instance(host=evil, release=evil)
    run = rows.run(evil, outcome="failed", reason=evil, error=evil, traceback=evil, instance=host)
    act = rows.act(evil, author=evil, note=evil)
    root.post(pages.act("clear_retry"), pages.confirmed(task, note=evil))
    for address in (
        *(pages.changelist(model) for model in ("scheduledtask", "taskrun")),
        *(pages.changelist(model) for model in ("taskoverride", "schedulerinstance")),
        *(pages.page(row) for row in (task, run, act, host)),
        pages.act("pause", task),
        pages.page(task).replace("/change/", "/history/"),
    ):
        response = root.get(address, follow=True)
        assert response.status_code == 200, address
        assert "<script>alert" not in response.content.decode(), address
        assert "alert(1)" in response.content.decode(), address


# --- why, attempts, statistics --------------------------------------------------


def test_nobody_at_work_is_the_reason_where_it_is(root: Client) -> None:
    task = rows.task(discharged_at=NOW - 3 * HOUR, registered_at=NOW - 9 * HOUR)
    html = root.get(pages.page(task)).content.decode()
    assert "does not run because no scheduler is at work" in html
    assert "ddc-why-urgent" in html


def test_what_became_of_the_occurrences_is_said_in_words(root: Client) -> None:
    task = rows.task(registered_at=NOW - 6 * HOUR)
    for back in (0, 1, 2):
        rows.run(scheduled_for=NOW.replace(second=0) - back * HOUR)
    rows.run(scheduled_for=NOW.replace(second=0), attempt=2, reason="retry")
    rows.run(
        outcome="missed",
        reason="no_scheduler",
        scheduled_for=NOW.replace(second=0) - 3 * HOUR,
        scheduled_from=NOW.replace(second=0) - 5 * HOUR,
        count=3,
        started_at=None,
    )
    assert (
        f"6 occurrences since {local_time('2026-11-28 04:00:30')}: 3 ran, 3 missed "
        f"(no scheduler was running, {local_time('2026-11-28 05:00')} – "
        f"{local_time('2026-11-28 07:00')})." in text(root.get(pages.page(task)))
    )


def charts(response: Any) -> list[str]:
    html = response.content.decode().split('id="ddc-detail"')[1]
    return re.findall(r'<svg [^>]*role="img" aria-label="[^"]+', html)


def test_charts_say_in_words_what_they_draw(root: Client) -> None:
    task = rows.task(registered_at=NOW - 6 * HOUR)
    for back, minutes in enumerate((1, 2, 9)):
        at = NOW.replace(second=0) - back * HOUR
        rows.run(
            scheduled_for=at,
            started_at=at + timedelta(seconds=back),
            finished_at=at + timedelta(seconds=back, minutes=minutes),
            outcome="failed" if back == 2 else "succeeded",
        )
    response = root.get(pages.page(task))
    shown = text(response)
    assert "Typically 2 min, at most 9 min." in shown
    assert "Starts typically 1 s late, at most 2 s." in shown
    assert "2 of 3 succeeded in 30 days." in shown
    assert len(charts(response)) == 3
    assert charts(root.get(pages.page(rows.task("new")))) == []


def test_attempts_are_told_with_the_delays_between_them(root: Client) -> None:
    at = NOW.replace(second=0)
    task = rows.task(occurrence_at=at, pending_retry_until=NOW + HOUR, failures=2)
    rows.run(outcome="failed", finished_at=at + timedelta(seconds=2), error="boom\nmore")
    rows.run(
        outcome="failed",
        reason="retry",
        attempt=2,
        scheduled_for=at,
        started_at=at + timedelta(seconds=12),
        finished_at=at + timedelta(seconds=13),
    )
    shown = text(root.get(pages.page(task)))
    first, second = local_time("2026-11-28 10:00"), local_time("2026-11-28 10:00:12")
    assert f"1 ✖ failed {first} boom 2 ✖ failed {second} 10 s" in shown


def test_the_history_comes_before_the_future_and_statistics_are_closed(root: Client) -> None:
    task = rows.task(pending_retry_until=NOW + HOUR)
    rows.run(outcome="failed", error="x" * 500)
    html = root.get(pages.page(task)).content.decode()
    order = ["ddc-act-run", "ddc-why", "ddc-state", "ddc-runs", "ddc-upcoming", "ddc-statistics"]
    places = [re.search(rf'(?:id|class)="[^"]*\b{name}\b', html) for name in order]
    starts = [place.start() if place else -1 for place in places]
    assert -1 not in starts and starts == sorted(starts)
    assert re.search(r'<details class="[^"]*ddc-statistics">', html)
    assert f"{'x' * 500}<" not in html
    assert f'title="{"x" * 500}">{"x" * 159}…</span></a>' in html


def test_a_task_of_http_says_so_and_can_be_filtered(root: Client) -> None:
    task = rows.task("daily", origin="http", registered_by="token ci")
    shown = text(root.get(pages.page(task)))
    assert "Origin: HTTP" in shown and "Registered by: token ci" in shown
    assert "daily" in text(root.get(pages.changelist(query="?origin__exact=http")))
    assert "0 scheduled tasks" in text(root.get(pages.changelist(query="?origin__exact=settings")))
