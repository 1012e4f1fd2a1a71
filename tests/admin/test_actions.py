"""Actions: that they are confirmed, what they say, and what they leave behind."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.urls import resolve, reverse
from django.utils import timezone

from django_declarative_cron.models import ScheduledTask, TaskOverride
from django_declarative_cron.store import database

from ..store.conftest import Stranger, impatient, stranger
from ..timezones import instant_of, local_time
from . import pages, rows
from .conftest import Login
from .pages import text
from .rows import NOW

__all__ = ["impatient", "stranger"]

VIEW = "view_scheduledtask"
TOMORROW = "2026-11-29T10:00"
NEXT = NOW.replace(hour=11, minute=0, second=0)
AT_ELEVEN = local_time("2026-11-28 11:00")
IN_FIVE_MINUTES = NOW + timedelta(minutes=5)

# A state on which each action takes effect.
READY: dict[str, dict[str, Any]] = {
    "run": {},
    "pause": {},
    "resume": {"paused_since": NOW - timedelta(hours=1)},
    "skip_next": {},
    "unskip": {"skip_at": NEXT},
    "retry_now": {"pending_retry_until": IN_FIVE_MINUTES},
    "clear_retry": {"pending_retry_until": IN_FIVE_MINUTES},
}
# The buttons of a task in that state.
ALWAYS = {"run", "pause", "skip_next"}
FITTING = {
    **dict.fromkeys(ALWAYS, ALWAYS),
    "resume": {"run", "pause", "resume"},
    "unskip": {"run", "pause", "unskip"},
    **dict.fromkeys(("retry_now", "clear_retry"), ALWAYS | {"retry_now", "clear_retry"}),
}


def did(key: str, task: ScheduledTask) -> bool:
    """Return whether an action took effect on a task."""
    task.refresh_from_db()
    return {
        "run": task.run_requested_at is not None,
        "pause": task.paused_since is not None,
        "resume": task.paused_since is None,
        "skip_next": task.skip_at == NEXT,
        "unskip": task.skip_at is None,
        "retry_now": task.run_requested_at is not None,
        "clear_retry": task.pending_retry_until is None,
    }[key]


def buttons(client: Client, task: ScheduledTask) -> set[str]:
    html = client.get(pages.page(task)).content.decode()
    return set(re.findall(r'class="[^"]*ddc-act ddc-act-(\w+)"', html))


@pytest.mark.parametrize("key", READY)
def test_the_page_of_a_task_offers_what_can_change_anything(root: Client, key: str) -> None:
    assert buttons(root, rows.task(**READY[key])) == FITTING[key]


@pytest.mark.parametrize(
    "passed", [{"skip_at": NOW - timedelta(hours=1)}, {"skip_at": NEXT, "discharged_at": NEXT}]
)
def test_a_skip_whose_instant_is_past_is_over(root: Client, passed: dict[str, Any]) -> None:
    task = rows.task(**passed)
    assert buttons(root, task) == ALWAYS
    assert "Actions in force: None" in text(root.get(pages.page(task)))


def test_without_any_action_allowed_there_is_no_menu(login: Login) -> None:
    rows.task()
    page = login(VIEW).get(pages.changelist()).content.decode()
    assert 'name="action"' not in page
    assert "action-select" not in page


def test_people_who_are_not_staff_are_sent_to_the_login(client: Client, db: None) -> None:
    task = rows.task()
    response = client.post(pages.act("pause"), pages.confirmed(task))
    assert response.status_code == 302
    assert "/login/" in response.headers["location"]
    assert not did("pause", task)


def test_an_action_needs_the_token_of_its_page(root: Client) -> None:
    task = rows.task()
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = root.cookies
    assert strict.post(pages.act("pause"), pages.confirmed(task)).status_code == 403
    asked = strict.get(pages.act("pause", task)).content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', asked)
    assert token
    said = pages.confirmed(task, csrfmiddlewaretoken=token[1])
    assert strict.post(pages.act("pause"), said).status_code == 302
    assert did("pause", task)


def test_the_confirmation_lists_what_will_happen_and_does_nothing(root: Client) -> None:
    waiting = rows.task("waiting", pending_retry_until=IN_FIVE_MINUTES)
    idle = rows.task("idle")
    chosen = {"action": "clear_retry", "_selected_action": [waiting.pk, idle.pk], "index": 0}
    shown = text(root.post(pages.changelist(), chosen))
    assert "idle No retry is pending. Nothing will change." in shown
    assert f"waiting The retry at {local_time('2026-11-28 10:05:30')} will be cancelled." in shown
    assert not did("clear_retry", waiting)


@pytest.mark.parametrize(
    ("key", "fields", "effect"),
    [
        ("run", {}, "Will run once now. The schedule does not change."),
        ("run", {"running_run": 7}, "Will run once more after the current run has ended."),
        ("run", {"paused_since": NOW}, "and stay paused."),
        ("run", {"broken_reason": "no module"}, "although the task is broken: no module"),
        ("run", {"cron": "* * *"}, "The row is damaged"),
        ("pause", {}, "No run will start"),
        ("pause", {"running_run": 7}, "The current run will continue. No new run will start."),
        ("pause", {"paused_since": NOW}, "This pause replaces the current one."),
        ("pause", {"paused_since": NOW, "enabled": False}, "The pause will be stored as well."),
        ("resume", {"paused_since": NOW}, f"Will run next at {AT_ELEVEN}"),
        ("resume", {}, "Not paused. Nothing will change."),
        ("resume", {"paused_since": NOW, "enabled": False}, "Change the declaration instead."),
        ("retry_now", {}, "No retry is pending. Nothing will change."),
        (
            "retry_now",
            {"pending_retry_until": NOW},
            f"instead of the retry at {local_time('2026-11-28 10:00:30')}",
        ),
        ("skip_next", {"skip_at": NEXT}, f"The run at {AT_ELEVEN} will be skipped already."),
        ("unskip", {"skip_at": NEXT}, f"The run at {AT_ELEVEN} will not be skipped."),
        ("unskip", {}, "No run is set to be skipped."),
    ],
)
def test_each_effect_is_said_beforehand(
    root: Client, key: str, fields: dict[str, Any], effect: str
) -> None:
    assert effect in text(root.get(pages.act(key, rows.task(**fields))))


def test_every_page_of_the_list_can_be_selected_at_once(root: Client) -> None:
    for number in range(110):
        rows.task(f"task {number:03}")
    chosen = {"action": "pause", "_selected_action": "1", "select_across": "1", "index": 0}
    asked = root.post(pages.changelist(), chosen).content.decode()
    keys = re.search(r'name="tasks" value="([\d,]+)"', asked)
    assert keys
    root.post(pages.act("pause"), {"tasks": keys[1], "note": "all of them"})
    assert ScheduledTask.objects.filter(paused_since=None).count() == 0
    assert LogEntry.objects.count() == 110


def test_what_took_effect_and_what_did_not_is_told(root: Client) -> None:
    waiting = rows.task("waiting", pending_retry_until=NOW)
    idle = rows.task("idle")
    response = root.post(pages.act("clear_retry"), pages.confirmed(waiting, idle), follow=True)
    assert "Retry state cleared: waiting." in text(response)
    assert "Nothing to clear: idle." in text(response)
    assert [entry.object_repr for entry in LogEntry.objects.all()] == ["waiting"]


@pytest.mark.requirement("003 Error Handling/2")
def test_an_action_is_written_down_with_author_note_and_time(root: Client) -> None:
    """P50."""
    task = rows.task()
    root.post(pages.act("pause"), pages.confirmed(task, note="stocktaking", until=TOMORROW))
    act = TaskOverride.objects.get()
    user = root.session["_auth_user_id"]
    assert (act.task_name, act.kind, act.note) == ("digest", "pause", "stocktaking")
    assert (act.author, act.author_key, act.created_at) == ("root", str(user), NOW)
    assert act.until == instant_of(TOMORROW)
    entry = LogEntry.objects.get()
    assert (str(entry.user_id), entry.object_id, entry.is_change()) == (user, str(task.pk), True)
    message = f"Pause until {act.until:%Y-%m-%d %H:%M} UTC: stocktaking"
    assert entry.get_change_message() == message
    assert message in text(root.get(pages.page(task).replace("/change/", "/history/")))
    task.refresh_from_db()
    assert task.paused_until == act.until


def test_a_retry_is_brought_forward_and_that_is_written_down(root: Client) -> None:
    task = rows.task(pending_retry_until=IN_FIVE_MINUTES)
    said = pages.confirmed(task, rows.task("idle"), note="the bank is back")
    shown = text(root.post(pages.act("retry_now"), said, follow=True))
    assert "Retry requested: digest." in shown
    assert "Nothing to retry: idle." in shown
    act = TaskOverride.objects.get()
    assert (act.task_name, act.kind, act.author) == ("digest", "run", "root")
    assert act.note == "Retried at once: the bank is back"
    assert LogEntry.objects.get().get_change_message() == "Retry now: the bank is back"
    # Until the run starts, the retry is what a scheduler that looks first would start.
    task.refresh_from_db()
    assert (task.run_requested_at, task.wake_at) == (NOW, NOW)
    assert task.pending_retry_until == IN_FIVE_MINUTES


@pytest.mark.parametrize(
    ("until", "error"),
    [
        (local_time("2026-11-28 10:00")[:16], "The end of the pause must be in the future."),
        ("2001-01-01T00:00", "The end of the pause must be in the future."),
        ("soon", "Enter a valid date/time."),
        ("2026-02-30T00:00", "Enter a valid date/time."),
        ("8999-12-30T12:00", None),
        ("9999-12-30T12:00", "This is too far in the future."),
    ],
)
def test_the_end_of_a_pause_must_be_in_the_future(
    root: Client, until: str, error: str | None
) -> None:
    task = rows.task()
    response = root.post(pages.act("pause"), pages.confirmed(task, until=until, note="why"))
    assert did("pause", task) == (error is None)
    if error is not None:
        assert error in text(response)
        assert ">\nwhy</textarea>" in response.content.decode()


@pytest.mark.parametrize("use_tz", [True, False])
def test_the_end_of_a_pause_is_read_in_the_zone_of_the_project(
    root: Client, settings: Any, use_tz: bool
) -> None:
    settings.USE_TZ, settings.TIME_ZONE = use_tz, "America/New_York"
    task = rows.task()
    assert "A time in America/New_York" in text(root.get(pages.act("pause", task)))
    # What the clocks show twice or never is asked about.
    for until in ("2027-03-14T02:30", "2027-11-07T01:30"):
        response = root.post(pages.act("pause"), pages.confirmed(task, until=until))
        said = "couldn’t be interpreted in time zone" if use_tz else "ambiguous or invalid"
        assert said in text(response)
        assert not did("pause", task)
    root.post(pages.act("pause"), pages.confirmed(task, until="2026-11-28T06:00"))
    task.refresh_from_db()
    assert task.paused_until == datetime(2026, 11, 28, 11, tzinfo=UTC)


def test_an_end_too_far_for_any_calendar_is_refused_not_a_crash(root: Client) -> None:
    task = rows.task()
    with timezone.override("America/New_York"):
        response = root.post(pages.act("pause"), pages.confirmed(task, until="9999-12-31T23:59"))
    assert response.status_code == 200
    assert not did("pause", task)


@pytest.mark.parametrize(
    "tasks", ["", "0", "x,-1,٣", "99999999999999999999", "9223372036854775808"]
)
def test_an_action_on_nothing_says_so(root: Client, tasks: str) -> None:
    response = root.post(pages.act("pause"), {"tasks": tasks}, follow=True)
    assert "No task was selected." in text(response)
    assert not TaskOverride.objects.exists()


@pytest.mark.parametrize(
    ("name", "args"),
    [("scheduledtask_act", ["run"]), ("taskrun_cancel", [1]), ("schedulerinstance_notify", [])],
)
def test_an_action_is_no_part_of_the_transaction_of_its_request(name: str, args: list[Any]) -> None:
    view = resolve(reverse(f"admin:{pages.APP}_{name}", args=args)).func
    assert getattr(view, "_non_atomic_requests", set()) == {database.alias()}


def test_unknown_actions_and_other_deployments_are_out_of_reach(root: Client) -> None:
    assert root.get(pages.act("explode")).status_code == 404
    theirs = rows.task(scheduler=rows.deployment("other"))
    root.post(pages.act("pause"), pages.confirmed(theirs))
    assert not did("pause", theirs)


def test_one_comes_back_where_one_came_from(root: Client) -> None:
    task = rows.task()
    page = root.post(pages.act("run"), {**pages.confirmed(task), "back": "page"})
    assert page.headers["location"] == pages.page(task)
    filters = "?_changelist_filters=status%3Dactive"
    back = root.post(pages.act("run").rstrip("?") + filters, pages.confirmed(task))
    assert back.headers["location"] == pages.changelist(query="?status=active")
    chosen = {"action": "run", "_selected_action": task.pk, "index": 0}
    asked = root.post(pages.changelist(query="?status=active"), chosen)
    assert filters in asked.content.decode()


# --- rows that somebody else has locked -----------------------------------------


def with_row_locks(test: Any) -> Any:
    is_file = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the file")
    return is_file(pytest.mark.usefixtures("impatient")(test))


@with_row_locks
@pytest.mark.parametrize("key", READY)
def test_an_action_on_a_locked_row_says_so_and_may_be_tried_again(
    root: Client, stranger: Stranger, key: str
) -> None:
    task, other = rows.task("held", **READY[key]), rows.task("other", **READY[key])
    stranger.hold("scheduledtask", name="held")
    said = {**pages.confirmed(task, other), "note": "why"}
    response = root.post(pages.act(key), said)
    assert response.status_code == 200
    words = "Locked by another transaction: held. Nothing was changed. Try again."
    assert words in text(response)
    assert "why</textarea>" in response.content.decode()
    assert not did(key, task) and not did(key, other)
    assert not TaskOverride.objects.exists() and not LogEntry.objects.exists()
    stranger.let_go()
    assert root.post(pages.act(key), said).status_code == 302
    assert did(key, task) and did(key, other)


@with_row_locks
def test_a_locked_deployment_is_no_error_either(root: Client, stranger: Stranger) -> None:
    task = rows.task("t", pending_retry_until=IN_FIVE_MINUTES)
    stranger.hold("schedulerstate", deployment="default")
    shown = text(root.post(pages.act("clear_retry"), pages.confirmed(task)))
    assert "Locked by another transaction. Nothing was changed. Try again." in shown
    stranger.let_go()
    assert not did("clear_retry", task)
