"""``cron backfill``: runs of the past, beside the schedule."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from django_declarative_cron import conf
from django_declarative_cron.models import ScheduledTask, SchedulerInstance, TaskOverride, TaskRun
from django_declarative_cron.runtime import watchers
from django_declarative_cron.runtime.clock import SystemClock
from django_declarative_cron.runtime.fencing import this_process
from django_declarative_cron.runtime.foreground import Backfill
from django_declarative_cron.runtime.scheduler import Scheduler
from django_declarative_cron.store import guard, manual_runs
from django_declarative_cron.store.manual_runs import AlreadyRunningError

from . import callbacks
from .conftest import DELAY, HERE, Cron

pytestmark = pytest.mark.django_db(transaction=True)

SPAN = ("--from", "2024-01-01T00:30Z", "--to", "2024-01-01T04:00Z")
HOURS = [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in (1, 2, 3, 4)]


@pytest.fixture
def register(settings: Any) -> Callable[..., None]:
    """Declare a task of some days' hours, and let a scheduler register it and go.

    Of each day's, it would owe the present one where the test runs at the beginning of an hour.
    """

    def write(job: str, **said: Any) -> None:
        task = {"name": "t", "cron": "0 * 1,31 1,12 *", "callback": f"{HERE}.{job}", **said}
        settings.SCHEDULED_TASKS = [{"retry_delay": DELAY, "overlap_policy": "coalesce", **task}]
        scheduler = Scheduler(background=False)
        scheduler.initialize(settings.SCHEDULED_TASKS)
        scheduler.stop()

    return write


def _state() -> dict[str, Any]:
    kept = ("last_attempt_at", "last_success_at", "failures", "discharged_at", "occurrence_at")
    return dict(ScheduledTask.objects.values(*kept, "pending_retry_until", "boot_at").get())


def _past() -> list[tuple[str, datetime, int]]:
    runs = TaskRun.objects.filter(reason="backfill").order_by("id")
    return [(run.outcome, run.scheduled_for, run.attempt) for run in runs]


def test_each_occurrence_runs_once_and_sees_which_it_is(
    cron: Cron, register: Callable[..., None]
) -> None:
    register("remember")
    before = _state()
    answer = cron("backfill", "t", *SPAN, "--user", "Ada", "--note", "lost figures")
    assert (answer.code, answer.err) == (0, "")
    assert answer.lines[0].startswith("1/4  2024-01-01 01:00 UTC  succeeded after ")
    assert answer.lines[-1] == "4 succeeded."
    assert [(run.scheduled_for, run.reason) for run in callbacks.seen] == [
        (hour, "backfill") for hour in HOURS
    ]
    assert _past() == [("succeeded", hour, 1) for hour in HOURS]
    assert _state() == before
    act = TaskOverride.objects.get()
    assert (act.kind, act.author, act.ended_at is None) == ("backfill", "Ada", False)
    assert act.note.endswith(": lost figures")
    # All by one instance, which has left.
    assert SchedulerInstance.objects.filter(runs__reason="backfill").distinct().count() == 1
    assert not SchedulerInstance.objects.filter(stopped_at=None).exists()


def test_what_succeeded_is_not_run_again_unless_asked(
    cron: Cron, register: Callable[..., None]
) -> None:
    register("remember")
    cron("backfill", "t", "--from", "2024-01-01T02:00Z", "--to", "2024-01-01T02:00Z")
    answer = cron("backfill", "t", *SPAN)
    assert answer.lines[1] == "2/4  2024-01-01 02:00 UTC  has succeeded before: not run again"
    assert answer.lines[-1] == "3 succeeded, 1 had succeeded before."
    assert cron("backfill", "t", *SPAN, "--repeat").lines[-1] == "4 succeeded."
    assert sorted(_past(), key=lambda run: run[1:])[:2] == [
        ("succeeded", HOURS[0], 1),
        ("succeeded", HOURS[0], 2),
    ]


def test_a_dry_run_runs_and_writes_nothing(cron: Cron, register: Callable[..., None]) -> None:
    register("remember")
    answer = cron("backfill", "t", *SPAN, "--dry-run", "--format", "json")
    assert (answer.code, answer.data["would_run"], answer.data["total"]) == (0, 4, 4)
    assert answer.data["occurrences"][0] == {
        "scheduled_for": "2024-01-01T01:00:00Z",
        "outcome": "would_run",
        "seconds": None,
        "error": "",
        "run": None,
    }
    assert (callbacks.seen, TaskRun.objects.count(), TaskOverride.objects.count()) == ([], 0, 0)


def test_it_ends_at_a_failure_and_leaves_the_state_alone(
    cron: Cron, register: Callable[..., None]
) -> None:
    register("fail")
    before = _state()
    answer = cron("backfill", "t", *SPAN)
    assert answer.code == 1
    assert answer.lines[-1] == "1 failed, 3 not reached."
    assert "1 run did not succeed, the first for 2024-01-01 01:00 UTC." in answer.err
    assert _state() == before
    answer = cron("backfill", "t", *SPAN, "--keep-going", "--format", "json")
    assert (answer.code, answer.data["failed"], answer.data["ok"]) == (1, 4, False)
    assert _past()[1] == ("failed", HOURS[0], 2)


def test_after_an_interrupt_it_goes_on(
    cron: Cron, register: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    register("remember")

    def once(run: Any) -> None:
        if len(callbacks.seen) == 2:
            callbacks.seen.append(None)
            raise KeyboardInterrupt
        callbacks.seen.append(run)

    monkeypatch.setattr(callbacks, "remember", once)
    answer = cron("backfill", "t", *SPAN)
    assert answer.code == 130
    assert "the same command goes on where it ended" in answer.err
    assert ScheduledTask.objects.get().orphaned is False
    answer = cron("backfill", "t", *SPAN)
    assert answer.lines[-1] == "2 succeeded, 2 had succeeded before."


def test_excluded_days_are_left_out_and_said(
    cron: Cron, register: Callable[..., None], settings: Any
) -> None:
    settings.DECLARATIVE_CRON = {"CALENDARS": {"new-year": lambda day: day == date(2024, 1, 1)}}
    register("remember", exclude_calendars="new-year")
    answer = cron("backfill", "t", "--from", "2023-12-31T22:30Z", "--to", "2024-01-01T04:00Z")
    assert answer.lines[-2:] == ["5 occurrences on days that calendars exclude.", "1 succeeded."]


def test_a_calendar_is_asked_as_often_as_there_are_lines(
    cron: Cron, register: Callable[..., None], settings: Any
) -> None:
    asked: list[date] = []
    settings.DECLARATIVE_CRON = {"CALENDARS": {"never": lambda day: bool(asked.append(day))}}
    register("remember", exclude_calendars="never", cron="0 * 1-3 1 *")
    asked.clear()
    span = ("--from", "2024-01-01T00:00Z", "--to", "2024-01-03T23:00Z")
    assert cron("backfill", "t", *span, "--dry-run").lines[-1] == "72 would run."
    assert len(asked) < 2 * 72


def test_what_a_calendar_may_exclude_does_not_run(
    cron: Cron, register: Callable[..., None], settings: Any
) -> None:
    def known_for_one_year(day: date) -> bool:
        if day.year == 2024:
            raise LookupError("not decided yet")
        return False

    settings.DECLARATIVE_CRON = {"CALENDARS": {"fairs": known_for_one_year}}
    register("remember", exclude_calendars="fairs")
    for more in ((), ("--dry-run",)):
        span = ("--from", "2023-12-31T22:30Z", "--to", "2024-01-01T04:00Z")
        answer = cron("backfill", "t", *span, *more)
        assert answer.code == 1
        assert "gives no answer for 2024-01-01" in answer.err
    assert [row[1] for row in _past()] == [datetime(2023, 12, 31, 23, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "2024-01-02", "--to", "2024-01-01"), "--from is behind --to."),
        (("--from", "2024-01-02", "--to", "2999-01-01"), "is yet to come"),
        (("--from", "yesterday"), "is not a time"),
    ],
)
def test_what_is_no_span_of_the_past_is_refused(
    cron: Cron, register: Callable[..., None], words: tuple[str, ...], said: str
) -> None:
    register("remember")
    answer = cron("backfill", "t", *words)
    assert answer.code == 2
    assert said in answer.err


class Stepping(SystemClock):
    """Let something happen instead of waiting."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self._happens = happens
        self.waits = 0

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Do it where it would wait."""
        if threading.current_thread() is not threading.main_thread():
            return event.wait(seconds)
        self.waits += 1
        self._happens()
        return False


def test_what_the_schedule_owes_goes_first(cron: Cron, register: Callable[..., None]) -> None:
    register("remember")
    now = SystemClock().now()
    ScheduledTask.objects.update(wake_at=now - timedelta(seconds=1))
    guard.SchedulerState.objects.update(lease_expires_at=now + timedelta(hours=1))
    clock = Stepping(lambda: ScheduledTask.objects.update(wake_at=None) and None)
    answer = cron("backfill", "t", *SPAN, clock=clock)
    assert (answer.code, clock.waits) == (0, 1)
    assert answer.err.strip() == "Waits: a run of 't' is in progress, or due by its schedule."
    assert len(callbacks.seen) == 4


def test_where_nobody_leads_nothing_goes_first(cron: Cron, register: Callable[..., None]) -> None:
    register("remember")
    ScheduledTask.objects.update(wake_at=SystemClock().now() - timedelta(seconds=1))
    clock = Stepping(lambda: pytest.fail("it waits for nobody"))
    assert cron("backfill", "t", *SPAN, clock=clock).code == 0


def _in_progress(heartbeat: datetime) -> TaskRun:
    """Let the first occurrence run in another process, which was heard of then."""
    state, now = guard.SchedulerState.objects.get(), SystemClock().now()
    instance = SchedulerInstance.objects.create(
        id=uuid4(), scheduler=state, pid=7, started_at=now, heartbeat_at=heartbeat
    )
    return TaskRun.objects.create(
        scheduler=state,
        instance=instance,
        task_name="t",
        scheduled_for=HOURS[0],
        started_at=now,
        outcome="running",
        reason="backfill",
        attempt=1,
        running_slot="t",
    )


def test_it_waits_for_a_run_in_progress(cron: Cron, register: Callable[..., None]) -> None:
    register("remember")
    run = _in_progress(SystemClock().now())

    def ends() -> None:
        TaskRun.objects.filter(pk=run.pk).update(outcome="succeeded", running_slot=None)

    clock = Stepping(ends)
    answer = cron("backfill", "t", *SPAN, clock=clock)
    assert (answer.code, clock.waits) == (0, 1)
    # That run was for the first occurrence, and succeeded.
    assert answer.lines[-1] == "3 succeeded, 1 had succeeded before."


def test_where_nobody_leads_it_ends_the_run_of_a_process_that_died(
    cron: Cron, register: Callable[..., None]
) -> None:
    register("remember")
    run = _in_progress(guard.LONG_AGO)
    clock = Stepping(lambda: pytest.fail("it waits for the dead"))
    answer = cron("backfill", "t", *SPAN, clock=clock)
    assert (answer.code, answer.lines[-1]) == (0, "4 succeeded.")
    run.refresh_from_db()
    assert (run.outcome, run.running_slot) == ("interrupted", None)
    assert ScheduledTask.objects.get().orphaned is False


def test_a_silent_process_is_dead_once_it_was_watched_for_long_enough(
    cron: Cron, register: Callable[..., None]
) -> None:
    register("remember")
    now = SystemClock().now()
    run = _in_progress(now - timedelta(hours=1))
    clock = Stepping(lambda: None)
    work = Backfill(conf.declarations(conf.registrations())[0], clock, False, lambda: None)
    here = this_process(conf.options())

    def start(watched: tuple[datetime, datetime] | None) -> None:
        candidacy = guard.Candidacy(watched)
        manual_runs.start_occurrence(
            work.member, here, work.declaration, HOURS[1], now, repeat=False, candidacy=candidacy
        )

    with pytest.raises(AlreadyRunningError):
        start(None)
    start((now - timedelta(minutes=5), now))
    run.refresh_from_db()
    assert run.outcome == "interrupted"


def test_a_leader_is_the_one_to_end_runs_of_the_dead(
    cron: Cron, register: Callable[..., None]
) -> None:
    register("remember")
    run = _in_progress(guard.LONG_AGO)
    now = SystemClock().now()
    guard.SchedulerState.objects.update(lease_expires_at=now + timedelta(hours=1))
    clock = Stepping(lambda: guard.SchedulerState.objects.update(lease_expires_at=None) and None)
    assert (cron("backfill", "t", *SPAN, clock=clock).code, clock.waits) == (0, 1)
    run.refresh_from_db()
    assert run.outcome == "interrupted"


def test_watchers_hold_up_the_end_and_no_run(
    cron: Cron, register: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    register("remember")
    told: list[int] = []

    class Slow:
        def begin(self, declarations: Any, whose: Any) -> None:
            told.append(len(callbacks.seen))

        def end(self, seconds: float) -> None:
            told.append(len(callbacks.seen))

    monkeypatch.setattr(watchers, "_watchers", [Slow()])
    assert cron("backfill", "t", *SPAN).lines[-1] == "4 succeeded."
    assert told == [0, 4]
