"""The page of one task: why, how it goes, what became of its occurrences."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.test import Client

from ..timezones import local_time
from . import pages, rows
from .rows import NOW

Words = Callable[[Any], str]
HOUR = timedelta(hours=1)


def test_the_page_says_why_in_one_sentence(root: Client, text: Words) -> None:
    rows.instance()
    task = rows.task(pending_retry_until=NOW + timedelta(minutes=5), discharged_at=NOW)
    shown = text(root.get(pages.page(task)))
    assert f"its retry at {local_time('2026-11-28 10:05:30')}." in shown


def test_a_pause_says_who_and_why(root: Client, text: Words) -> None:
    rows.instance()
    task = rows.task(paused_since=NOW - HOUR)
    rows.act(note="stocktaking", created_at=NOW - HOUR)
    shown = text(root.get(pages.page(task)))
    assert "It does not run because ada paused it, until someone resumes it (stocktaking)." in shown


def test_nobody_at_work_is_the_reason_where_it_is(root: Client) -> None:
    task = rows.task(discharged_at=NOW - 3 * HOUR, registered_at=NOW - 9 * HOUR)
    html = root.get(pages.page(task)).content.decode()
    assert "does not run because no scheduler is at work" in html
    assert "ddc-why-urgent" in html


def test_what_became_of_the_occurrences_is_said_in_words(root: Client, text: Words) -> None:
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


def test_charts_say_in_words_what_they_draw(root: Client, text: Words) -> None:
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
    assert "Starts typically 1 s after they were due, at most 2 s." in shown
    assert "2 of 3 succeeded in 30 days." in shown
    assert (
        len(re.findall(r'<svg [^>]*role="img" aria-label="[^"]+', response.content.decode())) == 3
    )


def test_a_task_that_never_ran_has_no_charts(root: Client) -> None:
    html = root.get(pages.page(rows.task())).content.decode()
    assert "ddc-picture" not in html.split('id="ddc-story"')[1]


def test_attempts_are_told_with_the_delays_between_them(root: Client, text: Words) -> None:
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
    first, second = local_time("2026-11-28 10:00:00"), local_time("2026-11-28 10:00:12")
    assert f"1 ✖ failed {first} boom 2 ✖ failed {second} 10 s" in shown


def test_what_the_clocks_do_is_remarked(root: Client, text: Words) -> None:
    spring = rows.task("spring", cron="30 2 * 3 0", timezone="Europe/Berlin", next_run_at=None)
    assert "2027-03-28 02:30 does not exist" in text(root.get(pages.page(spring)))
    autumn = rows.task("autumn", cron="30 2 * 10 0", timezone="Europe/Berlin", next_run_at=None)
    assert "happens twice, only the first counts" in text(root.get(pages.page(autumn)))


def test_times_are_shown_in_the_zone_of_the_viewer_where_it_is_another(
    root: Client, settings: Any, text: Words
) -> None:
    task = rows.task(timezone="Asia/Tokyo")
    for same in ("UTC", "Asia/Tokyo"):
        settings.TIME_ZONE = same
        assert "In yours" not in text(root.get(pages.page(task)))
    settings.TIME_ZONE = "Europe/Berlin"
    shown = text(root.get(pages.page(task)))
    assert "In yours" in shown
    assert "2026-11-28 20:00 Asia/Tokyo 2026-11-28 12:00 Europe/Berlin" in shown


def test_the_overview_says_who_leads_and_counts(root: Client, text: Words) -> None:
    leader = rows.instance(heartbeat_at=NOW - timedelta(seconds=4))
    rows.instance(host="other")
    scheduler = leader.scheduler
    scheduler.leader = leader
    scheduler.save()
    rows.task("a", running_run=1)
    rows.task("b", paused_since=NOW)
    rows.task("c")
    rows.run("c", outcome="failed", scheduled_for=datetime(2026, 11, 28, 9, tzinfo=UTC))
    shown = text(root.get(pages.changelist()))
    assert "A scheduler leads worker:4711 last sign of life: 4 s ago 1 stands by" in shown
    assert "1 ● Active 1 ▶ Running 0 ↻ Retrying 1 ■ Paused 1 ✖ Failed in 24 h" in shown


def test_the_overview_calls_living_what_the_banner_does(root: Client, text: Words) -> None:
    """Half a minute, although a lease is shorter; one that is only vouched for is silent."""
    late = rows.instance(heartbeat_at=NOW - timedelta(seconds=25))
    late.scheduler.leader = late
    late.scheduler.save()
    shown = text(root.get(pages.changelist()))
    assert "A scheduler leads worker:4711 last sign of life: 25 s ago" in shown
    late.heartbeat_at, late.mute_since = NOW, NOW - timedelta(seconds=31)
    late.save()
    assert "A scheduler leads" not in text(root.get(pages.changelist()))


def test_tiles_lead_to_what_they_count(root: Client) -> None:
    rows.instance()
    rows.task("a", paused_since=NOW, paused_until=NOW + HOUR)
    rows.task("b")
    rows.run("b", outcome="timed_out")
    rows.task("c")

    def names(query: str) -> list[str]:
        html = root.get(pages.changelist(query=query)).content.decode()
        return re.findall(r'<th [^>]*class="field-name"><a [^>]*>([^<]+)</a>', html)

    assert names("?paused=yes") == ["a"]
    assert names("?paused=no") == ["b", "c"]
    assert names("?failed=day") == ["b"]
    assert names("?last=timed_out") == ["b"]
    assert names("?app=shop") == ["a", "b", "c"]
    assert names("?app=sho") == []
    html = root.get(pages.changelist()).content.decode()
    for query in re.findall(r'class="ddc-tile [^>]*href="([^"]+)"', html):
        assert (
            "e=1"
            not in root.get(pages.changelist(query=query), follow=True).request["QUERY_STRING"]
        )


def test_lanes_are_bounded_and_the_rest_is_counted(root: Client, text: Words) -> None:
    for number in range(15):
        rows.task(f"t{number:02}")
    response = root.get(pages.changelist())
    assert response.content.decode().count("ddc-lane-picture") == 12
    assert "3 more tasks of this page have no lane here" in text(response)
