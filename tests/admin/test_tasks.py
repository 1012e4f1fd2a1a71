"""The list of scheduled tasks: its columns, its order, its filters and the strip above it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.test import Client
from django.utils import translation
from django.utils.html import strip_tags

from django_declarative_cron.admin import tasks
from django_declarative_cron.admin.badges import STATUS_WORDS
from django_declarative_cron.core.overlap import POLICIES
from django_declarative_cron.core.state import TaskState
from django_declarative_cron.core.status import Status, status_of
from django_declarative_cron.models import ScheduledTask, SchedulerInstance
from django_declarative_cron.store.overview import Ran
from django_declarative_cron.store.queries import next_start_of
from django_declarative_cron.store.rows import state_of
from django_declarative_cron.store.status import next_start_at, status_query

from ..timezones import local_time
from . import pages, rows
from .conftest import Login
from .pages import text
from .rows import NOW

HOUR = timedelta(hours=1)


def cells(response: Any, field: str) -> list[str]:
    shape = rf'<t[dh] [^>]*class="field-{field}[^"]*">(.*?)</t[dh]>'
    found = re.findall(shape, response.content.decode(), re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in found]


def shown(column: Callable[[ScheduledTask], str], **fields: Any) -> str:
    """Return the text of a column for a task with such fields."""
    return " ".join(strip_tags(column(rows.task(**fields))).split())


# --- columns --------------------------------------------------------------------


DATES = (tasks.last_attempt_at, tasks.last_success, tasks.pending_retry)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "dates"),
    [
        ({}, ["-", "-", "-"]),
        (
            {"last_attempt_at": NOW.replace(second=0), "last_success_at": NOW.replace(minute=2)},
            [local_time("2026-11-28 10:00"), local_time("2026-11-28 10:02:30"), "-"],
        ),
        (
            {"pending_retry_until": NOW + timedelta(minutes=5)},
            ["-", "-", local_time("2026-11-28 10:05:30")],
        ),
        ({"run_count": 3}, ["not since the schedule changed", "-", "-"]),
    ],
)
def test_the_dates_of_a_task(fields: dict[str, Any], dates: list[str]) -> None:
    """AD-01, AD-02, AD-04."""
    task = rows.task(**fields)
    assert [strip_tags(column(task)) for column in DATES] == dates


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({}, "● Active"),
        ({"running_run": 1}, "▶ Running"),
        ({"pending_retry_until": NOW + timedelta(minutes=5)}, "↻ Retrying"),
        ({"paused_since": NOW}, "■ Paused"),
        (
            {"paused_since": NOW, "paused_until": NOW + HOUR},
            f"◧ Paused until {local_time('2026-11-28 11:00:30')}",
        ),
        ({"enabled": False}, "□ Disabled"),
        ({"next_run_at": NOW - HOUR}, "▲ Overdue"),
        ({"broken_reason": "no module named shop"}, "✖ Broken no module named shop"),
        ({"interruptions": 2}, "● Active"),
        ({"interruptions": 3}, "● Active the last 3 runs crashed their process"),
    ],
)
def test_each_status_has_a_word_and_a_symbol(fields: dict[str, Any], word: str) -> None:
    """P51."""
    assert shown(tasks.status, **fields) == word


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"next_run_at": NOW + timedelta(minutes=59, seconds=30)}, "in 59 min 11:00"),
        ({"next_run_at": NOW + 23 * HOUR}, "in 23 h 11-29 09:00"),
        ({"pending_retry_until": NOW + timedelta(minutes=5)}, "retry in 5 min 10:05"),
        ({"next_run_at": None}, "-"),
        ({"paused_since": NOW}, "-"),
    ],
)
def test_the_next_run_says_how_far_away_it_is(
    settings: Any, fields: dict[str, Any], text: str
) -> None:
    """P52."""
    settings.TIME_ZONE = "UTC"
    assert shown(tasks.next_run, **fields) == text


@pytest.mark.django_db
def test_the_whole_instant_is_the_title_of_a_short_one(settings: Any) -> None:
    """P14."""
    settings.TIME_ZONE = "Europe/Berlin"
    assert 'title="in 59 min, 2026-11-28 12:00 CET"' in tasks.next_run(rows.task())


@pytest.mark.django_db
def test_the_schedule_is_shown_as_written_and_in_words() -> None:
    cron = {"cron": "30 9 * * 1", "timezone": "Europe/Berlin"}
    assert shown(tasks.schedule, **cron).startswith("30 9 * * 1 Europe/Berlin At 09:30")
    with translation.override("de"):
        assert "Montag" in shown(tasks.schedule, name="other", **cron)


@pytest.mark.django_db
def test_the_last_run_is_the_newest_outcome() -> None:
    task = rows.task()
    assert tasks.last_run(task) == tasks.recent(task) == "-"
    ran = [("succeeded", 5), ("failed", 4), ("skipped", 3)]
    task.recent = [  # type: ignore[attr-defined]
        Ran(outcome, NOW - hours * HOUR, NOW - hours * HOUR) for outcome, hours in ran
    ]
    assert strip_tags(tasks.last_run(task)).startswith("↷ skipped 3 h ago")
    assert 'aria-label="1 of the last 3 succeeded"' in tasks.recent(task)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("declared", "attempt"),
    [
        ({}, "attempt 3"),
        (
            {"retry_delay": None, "declaration": {"retry": {"max_attempts": 5}, "dialect": "ojs"}},
            "attempt 3 of 5",
        ),
    ],
)
def test_a_retry_shows_the_number_of_the_attempt(declared: dict[str, Any], attempt: str) -> None:
    retry = {"pending_retry_until": NOW + timedelta(minutes=5), "attempt": 2}
    assert shown(tasks.pending_retry, **retry, **declared).endswith(attempt)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "None"),
        ({"paused_since": NOW}, f"paused since {local_time('2026-11-28 10:00:30')}"),
        ({"run_requested_at": NOW}, f"run requested at {local_time('2026-11-28 10:00:30')}"),
        (
            {"skip_at": NOW + HOUR, "run_requested_at": NOW},
            f"run requested at {local_time('2026-11-28 10:00:30')}; "
            f"run at {local_time('2026-11-28 11:00:30')} will be skipped",
        ),
        ({"skip_at": NOW - HOUR}, "None"),
    ],
)
def test_operator_actions_in_force_are_shown(fields: dict[str, Any], text: str) -> None:
    assert shown(tasks.actions_in_force, **fields) == text


# --- the whole list -------------------------------------------------------------


def names(client: Client, query: str = "") -> list[str]:
    return cells(client.get(pages.changelist(query=query)), "name")


def test_the_list_shows_one_line_a_task(root: Client) -> None:
    rows.instance(heartbeat_at=NOW - timedelta(seconds=4))
    name = "report " * 30
    rows.task(name)
    rows.run(name, "failed", scheduled_for=NOW - HOUR)
    rows.run(name)
    response = root.get(pages.changelist())
    assert cells(response, "status") == ["● Active"]
    assert cells(response, "schedule")[0].startswith("0 * * * * UTC Every hour")
    assert cells(response, "next_run")[0].startswith("in 59 min")
    assert cells(response, "last_run")[0].startswith("✔ succeeded")
    html = response.content.decode()
    assert f'<span title="{name}">{name}</span></a>' in html
    assert 'aria-label="1 of the last 2 succeeded"' in html
    assert html.index("ddc-summary") < html.index('id="result_list"')
    assert 'href="#result_list"' in html
    # Only a page of its own has them, so they cost the list nothing.
    assert "ddc-lane" not in html and "ddc-load" not in html


def test_tasks_that_need_attention_come_first_then_those_that_run_next(root: Client) -> None:
    rows.task("later", next_run_at=NOW + 2 * HOUR)
    rows.task("never", next_run_at=None)
    rows.task("overdue", next_run_at=NOW - 2 * HOUR)
    rows.task("Also overdue", next_run_at=NOW - 2 * HOUR)
    rows.task("failing", failures=1, next_run_at=NOW + 3 * HOUR)
    rows.task("failing and running", failures=1, next_run_at=NOW + 4 * HOUR, running_run=1)
    rows.task("failing and paused", failures=1, next_run_at=NOW + HOUR, paused_since=NOW)
    rows.task("retrying", pending_retry_until=NOW + HOUR)
    rows.task("broken", broken_reason="x")
    assert names(root) == [
        *("broken", "Also overdue", "overdue", "retrying", "failing", "failing and running"),
        *("later", "failing and paused", "never"),
    ]


@pytest.mark.parametrize("column", range(1, 7))
def test_every_column_can_be_sorted_by(root: Client, column: int) -> None:
    for number in range(3):
        rows.task(f"t{number}", failures=number, cron=f"{number} * * * *")
    ascending, descending = names(root, f"?o={column}"), names(root, f"?o=-{column}")
    assert sorted(ascending) == sorted(descending) == ["t0", "t1", "t2"]
    if column in (2, 3, 6):
        assert ascending == descending[::-1] == ["t0", "t1", "t2"]


def test_filters_and_search_narrow_the_list(root: Client) -> None:
    rows.task("paused", paused_since=NOW, declaration={"tags": ["nightly", "money"]})
    rows.task("until", paused_since=NOW, paused_until=NOW + HOUR)
    rows.task("running", running_run=1, timezone="Europe/Berlin", declaration={"tags": "torn"})
    rows.task("off", enabled=False, description="Counts the stock", failures=1)
    rows.task("failed", declaration={"tags": ["nightly"]})
    rows.run("failed", outcome="timed_out")
    found = {
        "?status=paused": {"paused"},
        "?status=disabled": {"off"},
        "?status=running": {"running"},
        "?status=nonsense": {"running", "off", "paused", "until", "failed"},
        "?paused=yes": {"paused", "until"},
        "?paused=no": {"running", "off", "failed"},
        "?failed=now": {"off"},
        "?failed=day": {"failed"},
        "?last=timed_out": {"failed"},
        "?app=shop": {"running", "off", "paused", "until", "failed"},
        "?app=sho": set(),
        "?tag=nightly": {"paused", "failed"},
        "?tag=money": {"paused"},
        "?enabled__exact=0": {"off"},
        "?timezone=Europe/Berlin": {"running"},
        "?q=stock": {"off"},
        "?q=unni": {"running"},
    }
    assert {query: set(names(root, query)) for query in found} == found
    assert "?tag=money" in root.get(pages.changelist()).content.decode()


def test_damaged_rows_are_broken_and_the_list_is_shown(root: Client) -> None:
    rows.task("a cron", cron="* * *")
    rows.task("b zone", timezone="Mars/Olympus")
    rows.task("c path", timezone="../../etc/passwd")
    rows.task("d declaration", declaration="nothing")
    rows.task("e fine")
    response = root.get(pages.changelist(query="?o=2"))
    found = cells(response, "status")
    assert [status.split()[1] for status in found] == ["Broken"] * 4 + ["Active"]
    assert "Invalid cron expression" in found[0]
    assert cells(response, "next_run")[:4] == ["-"] * 4


def test_tasks_of_another_deployment_are_not_shown(root: Client) -> None:
    rows.task("ours")
    theirs = rows.task("theirs", scheduler=rows.deployment("other"))
    assert names(root) == ["ours"]
    assert root.get(pages.page(theirs)).status_code == 302


# --- the strip ------------------------------------------------------------------


def strip(response: Any) -> str:
    found = re.search(r'<p id="ddc-summary".*?</p>', response.content.decode(), re.DOTALL)
    return "" if found is None else " ".join(strip_tags(found[0]).split())


def lead(**fields: Any) -> SchedulerInstance:
    leader = rows.instance(**fields)
    leader.scheduler.leader = leader
    leader.scheduler.save()
    return leader


def test_the_strip_names_the_leader_and_counts_tasks_with_problems(root: Client) -> None:
    lead(heartbeat_at=NOW - timedelta(seconds=4))
    rows.instance(host="other")
    rows.task("a", running_run=1)
    rows.task("b", paused_since=NOW, failures=2)
    rows.task("c", next_run_at=NOW - HOUR)
    response = root.get(pages.changelist())
    assert strip(response) == "Leader: worker:4711, 1 standby ✖ 1 failed ▲ 1 overdue ▶ 1 running"
    html = response.content.decode()
    assert 'title="Last heartbeat: 4 s ago"' in html
    links = re.findall(r'<a href="([^"]+)" class="ddc-count', html)
    assert [names(root, query) for query in links] == [["b"], ["c"], ["a"]]


def test_the_strip_names_no_host_to_those_who_may_not_see_schedulers(login: Login) -> None:
    lead(host="cellar")
    response = login("view_scheduledtask").get(pages.changelist())
    assert strip(response) == "Leader: running, 0 standbys"
    assert "cellar" not in response.content.decode()


def test_the_strip_and_the_banner_agree_on_a_silent_leader(root: Client) -> None:
    """For half a minute a leader counts although its lease is shorter."""
    late = lead(heartbeat_at=NOW - timedelta(seconds=25))
    assert strip(root.get(pages.changelist())).startswith("Leader: worker:4711")
    # While only its watchdog sends heartbeats, it does not count.
    late.heartbeat_at, late.mute_since = NOW, NOW - timedelta(seconds=31)
    late.save()
    response = root.get(pages.changelist())
    assert strip(response).startswith("Leader: none")
    assert "No scheduler is running" in text(response)


# --- one word for each task, the same in the column and in the filter --------------


AGO = NOW - timedelta(minutes=2)
AHEAD = NOW + timedelta(minutes=2)


@pytest.mark.requirement("001 Task State Model/1")
@pytest.mark.parametrize(
    ("state", "around", "word"),
    [
        ({}, {}, Status.ACTIVE),
        ({}, {"next_run_at": None}, Status.ACTIVE),
        ({}, {"next_run_at": NOW - timedelta(seconds=60)}, Status.ACTIVE),
        ({}, {"next_run_at": NOW - timedelta(seconds=61)}, Status.OVERDUE),
        ({"running": True}, {"next_run_at": AGO}, Status.RUNNING),
        ({"pending_retry_until": AHEAD}, {}, Status.RETRYING),
        ({"pending_retry_until": AGO}, {}, Status.OVERDUE),
        ({"run_requested_at": AGO}, {}, Status.OVERDUE),
        ({"paused_since": AGO}, {"next_run_at": AGO}, Status.PAUSED),
        ({"paused_since": AGO, "paused_until": AHEAD}, {}, Status.PAUSED_UNTIL),
        ({"paused_since": AGO, "paused_until": NOW}, {}, Status.ACTIVE),
        ({"paused_since": AGO, "paused_until": NOW}, {"next_run_at": AGO}, Status.OVERDUE),
        ({}, {"enabled": False}, Status.DISABLED),
        ({"paused_since": AGO, "paused_until": AHEAD}, {"enabled": False}, Status.DISABLED),
        ({"running": True}, {"enabled": False}, Status.RUNNING),
        ({"running": True}, {"is_gone": True}, Status.INTERRUPTED),
        ({"running": True}, {"broken": True}, Status.BROKEN),
        ({"paused_since": AGO}, {"broken": True}, Status.BROKEN),
    ],
)
def test_the_most_urgent_word_is_said(
    state: dict[str, Any], around: dict[str, Any], word: Status
) -> None:
    found = status_of(
        TaskState(name="a", registered_at=NOW - timedelta(days=1), **state),
        NOW,
        **{"next_run_at": AHEAD, **around},
    )
    assert found is word


def test_each_word_has_a_shape_of_its_own() -> None:
    assert len({status.symbol for status in Status}) == len(Status) == len(STATUS_WORDS)


def _tasks_of_every_kind(axes: dict[str, tuple[Any, ...]]) -> None:
    first = rows.task("t")
    ScheduledTask.objects.bulk_create(
        ScheduledTask(
            scheduler=first.scheduler,
            scheduler_identifier=first.scheduler_identifier,
            name=f"t{number}",
            cron=first.cron,
            timezone="UTC",
            retry_delay=first.retry_delay,
            registered_at=first.registered_at,
            **dict(zip(axes, values, strict=True)),
        )
        for number, values in enumerate(product(*axes.values()))
    )


WHEN: dict[str, tuple[Any, ...]] = {
    "paused_since": (None, AGO),
    "paused_until": (None, AGO, AHEAD),
    "pending_retry_until": (None, AGO, AHEAD),
    "next_run_at": (None, AGO, AHEAD),
}


@pytest.mark.django_db
def test_the_next_start_of_a_query_is_that_of_the_state() -> None:
    declarations = ({}, *({"overlap_policy": policy} for policy in POLICIES))
    _tasks_of_every_kind({**WHEN, "declaration": declarations})
    for task in ScheduledTask.objects.annotate(found=next_start_at()):
        start = next_start_of(task)
        assert task.found == (None if start is None else start.at), task.name


@pytest.mark.django_db
def test_the_filter_agrees_with_the_column_on_every_state() -> None:
    others: dict[str, tuple[Any, ...]] = {
        "broken_reason": ("", "no module"),
        "running_run": (None, 7),
        "enabled": (True, False),
        "run_requested_at": (None, AGO),
    }
    _tasks_of_every_kind({**WHEN, **others})
    said = {
        status: set(ScheduledTask.objects.filter(status_query(status, NOW)).values_list("name"))
        for status in Status
    }
    assert sum(len(names) for names in said.values()) == ScheduledTask.objects.count()
    for task in ScheduledTask.objects.all():
        around = {"next_run_at": task.next_run_at, "broken": bool(task.broken_reason)}
        word = status_of(state_of(task), NOW, enabled=task.enabled, **around)
        assert (task.name,) in said[word], (task.name, word)
