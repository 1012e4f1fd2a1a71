"""Runs of external workers: overlaps, interruptions, cancellations, transactions, events."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.dispatch import Signal
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_declarative_cron import signals
from django_declarative_cron.core.explain import Cause
from django_declarative_cron.core.status import Status
from django_declarative_cron.models import (
    Outcome,
    ScheduledTask,
    TaskOverride,
    TaskRun,
)
from django_declarative_cron.store import external_jobs, manual_runs, results
from django_declarative_cron.store.external_jobs import Claimant, Report
from django_declarative_cron.store.manual_runs import Effect
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.store.outbox import name_of
from django_declarative_cron.store.overview import tally
from django_declarative_cron.store.queries import explain, read, with_runs
from django_declarative_cron.store.sentences import sentence
from django_declarative_cron.store.status import status_query
from django_declarative_cron.testing import Simulation, post_task

from ..threads import elsewhere
from ..timeouts import TIMEOUT
from .conftest import ACK, BEAT, EXTERNAL, STORY, Place, beat_of

SINK = {"url": "http://127.0.0.1:9/", "secret": "whsec_" + "QUJD" * 11}
MINUTE = timedelta(minutes=1)


@contextmanager
def heard(signal: Signal) -> Iterator[list[dict[str, Any]]]:
    """Collect the values that a signal is sent with."""
    values: list[dict[str, Any]] = []

    def listen(**sent: Any) -> None:
        values.append(sent)

    signal.connect(listen)
    yield values
    signal.disconnect(listen)


def refuse(*_: Any) -> Any:
    raise DatabaseError("the second half fails")


def test_a_run_outlives_the_option_by_its_reservation_only(place: Place, settings: Any) -> None:
    place.fetched()
    with override_settings(DECLARATIVE_CRON={}):
        place.to("13:00:01")
        assert place.runs() == [(Outcome.INTERRUPTED, "due", 1)]
        task = ScheduledTask.objects.get(name="sync")
        assert "EXTERNAL_WORKERS is off" in task.broken_reason
    place.to("13:10:01")
    assert place.runs()[1:] == [(Outcome.MISSED, "broken", 0), (Outcome.WAITING, "orphaned", 1)]
    assert ScheduledTask.objects.get(name="sync").broken_reason == ""
    [job] = place.fetch()
    assert place.report(ACK, job).status == 200
    place.to("14:00:01")
    assert place.runs()[-1] == (Outcome.WAITING, "due", 1)


@pytest.mark.parametrize(
    ("policy", "newer", "offered"),
    [
        ("skip", [(Outcome.SKIPPED, "overlap_skip", 0)], [["11:00"]]),
        ("enqueue", [(Outcome.WAITING, "due", 1)], [["11:00"], ["12:00"]]),
        ("allow", [(Outcome.WAITING, "due", 1)], [["11:00", "12:00"]]),
    ],
)
def test_an_occurrence_during_a_waiting_run(
    place: Place, policy: str, newer: list[Any], offered: list[list[str]]
) -> None:
    place.post(overlap_policy=policy)
    place.to("12:00:01")
    assert place.runs() == [(Outcome.WAITING, "due", 1), *newer]
    found = []
    while jobs := place.fetch(count=5):
        found.append([job["created_at"][11:16] for job in jobs])
        assert {place.report(ACK, job).status for job in jobs} == {200}
        place.to(f"12:00:0{5 + len(found)}")
    assert found == offered
    # The origin of a task does not depend on the reason of its run.
    assert set(TaskRun.objects.values_list("origin", flat=True)) == {"http"}


def test_the_newest_run_takes_the_place_of_a_waiting_one(place: Place, settings: Any) -> None:
    settings.DECLARATIVE_CRON |= {"EVENT_SINK": SINK}
    place.post(overlap_policy="cancel_previous")
    place.to("12:00:01")
    assert [outcome for outcome, *_ in place.runs()] == [Outcome.CANCELLED, Outcome.WAITING]
    told = place.events()
    assert sorted(each["type"] for each in told) == [
        *("cron.triggered", "cron.triggered", "job.cancelled", "job.enqueued", "job.enqueued")
    ]
    [ended] = [each["data"]["job_id"] for each in told if each["type"] == "job.cancelled"]
    assert ended == told[0]["data"]["job_id"]
    [job] = place.fetch(count=5, visibility_timeout_ms=7_200_000)
    assert job["created_at"] == "2024-01-01T12:00:00Z"
    place.to("13:00:01")
    assert place.caller.post(BEAT, beat_of(job)).data["jobs_to_cancel"] == [job["id"]]
    assert place.report(ACK, job).data["state"] == "cancelled"


def test_a_silent_worker_keeps_its_run_for_ten_minutes_and_not_longer(place: Place) -> None:
    place.post()
    place.to("11:00:00")
    [job] = place.fetch()
    place.to("11:09:59")
    assert place.runs() == [(Outcome.RUNNING, "due", 1)]
    place.to("11:10:05")
    assert place.runs() == [(Outcome.INTERRUPTED, "due", 1), (Outcome.WAITING, "orphaned", 2)]
    late = place.report(ACK, job)
    assert late.code == (409, "invalid_request")
    [again] = place.fetch()
    assert again["id"] != job["id"]


def test_a_cancellation_is_one_transaction(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    name = place.due()
    with monkeypatch.context() as patch:
        for kind in ("record", "record_here"):
            patch.setattr(results, kind, refuse)
        assert place.caller.delete(f"/v1/jobs/{name}").code == (503, "backend_error")
    assert place.runs() == [(Outcome.WAITING, "due", 1)]
    assert not TaskOverride.objects.exists()
    [job] = place.fetch()
    assert job["id"] == name


def test_a_waiting_run_is_shown_and_may_be_cancelled(place: Place) -> None:
    place.due()
    task, out = ScheduledTask.objects.get(name="sync"), StringIO()
    now = place.sim.now
    assert read(task, now).status is Status.QUEUED
    mine = ScheduledTask.objects.filter(name="sync")
    [listed] = with_runs(mine, now)
    with CaptureQueriesContext(connection) as queries:
        assert read(listed, now).status is Status.QUEUED
    assert len(queries) == 0
    assert mine.filter(status_query(Status.QUEUED, now)).exists()
    assert not mine.filter(status_query(Status.RUNNING, now)).exists()
    assert tally(mine, now)[Status.QUEUED] == 1
    text = "The run of 2024-01-01 11:00 UTC is queued until a worker fetches it."
    for at in (None, datetime(2024, 1, 1, 11, tzinfo=UTC)):
        assert sentence(explain(task, now, at, is_attended=True), UTC) == text
    call_command("cron", "list", stdout=out)
    assert "▷ queued" in out.getvalue()
    call_command("cron", "cancel", "sync", "--user", "gardener", stdout=out)
    assert "1 waiting run ended: sync" in out.getvalue()
    assert place.runs()[0][0] == "cancelled"
    assert TaskOverride.objects.get().author == "gardener"
    place.to("12:00:01")
    assert len(place.fetch()) == 1
    task.refresh_from_db()
    assert read(task, place.sim.now).status is Status.RUNNING
    assert explain(task, place.sim.now, is_attended=True).cause is Cause.RUNNING


def test_the_cancellation_of_an_enqueued_job_is_published(
    place: Place, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    settings.DECLARATIVE_CRON |= {"EVENT_SINK": SINK}
    place.post(overlap_policy="enqueue")
    place.to("12:00:01")
    first, behind = TaskRun.objects.filter(task_name="sync").order_by("id")
    name = str(name_of(behind.pk, behind.scheduled_for))
    with (
        heard(signals.task_run_cancel_requested) as asked,
        django_capture_on_commit_callbacks(execute=True),
    ):
        assert place.caller.delete(f"/v1/jobs/{name}").data["job"]["state"] == "cancelled"
    assert place.caller.delete(f"/v1/jobs/{name}").code == (409, "invalid_request")
    last = place.events()[-1]
    ended = (last["type"], last["data"]["job_id"], last["data"]["reason"])
    assert ended == ("job.cancelled", name, "requested")
    assert [(each["run"], each["waits"]) for each in asked] == [(behind.pk, True)]
    [job] = place.fetch()
    assert place.report(ACK, job).status == 200
    place.to("12:10")
    assert TaskRun.objects.get(pk=first.pk).outcome == Outcome.SUCCEEDED
    assert place.fetch() == []


def test_another_schedule_leaves_a_waiting_run_to_its_worker(place: Place) -> None:
    place.due()
    place.post(cron="30 * * * *")
    [job] = place.fetch()
    assert place.report(ACK, job).status == 200
    task = ScheduledTask.objects.get(name="sync")
    assert (task.running_run, task.last_success_at) == (None, None)


def test_a_run_that_waits_ends_with_the_removal_of_its_task(place: Place, settings: Any) -> None:
    settings.DECLARATIVE_CRON |= {"EVENT_SINK": SINK}
    place.due()
    assert place.caller.delete("/v1/cron/sync").status == 200
    assert place.runs() == [(Outcome.CANCELLED, "due", 1)]
    assert place.fetch() == []
    ended = [each["data"] for each in place.events() if each["type"] == "job.cancelled"]
    assert [each["cron_name"] for each in ended] == ["sync"]
    place.to("11:30:00")
    place.post()
    place.to("12:00:01")
    assert place.runs() == [(Outcome.CANCELLED, "due", 1), (Outcome.WAITING, "due", 1)]
    assert ScheduledTask.objects.get(name="sync").broken_reason == ""
    assert len(place.fetch()) == 1


@pytest.mark.parametrize("is_fetched", [True, False])
def test_the_run_of_a_lost_row_still_overlaps(place: Place, is_fetched: bool) -> None:
    place.due()
    fetched = place.fetch(visibility_timeout_ms=7_200_000) if is_fetched else []
    ScheduledTask.objects.filter(name="sync").delete()
    place.post()
    place.to("12:00:01")
    assert len(fetched) == is_fetched
    assert ScheduledTask.objects.get(name="sync").broken_reason == ""
    assert [reason for _, reason, _ in place.runs()] == ["due", "overlap_skip"]


def test_settings_that_take_a_task_over_do_not_wait_for_a_worker(place: Place) -> None:
    place.due()
    place.sim.stop()
    place.sim.initialize([*STORY, {**STORY[0], "name": "sync", "cron": "0 * * * *"}])
    assert place.runs() == [(Outcome.CANCELLED, "due", 1)]
    place.to("12:00:01")
    assert place.runs()[-1] == (Outcome.SUCCEEDED, "due", 1)


def test_a_removed_tasks_run_ends_by_itself_when_its_reservation_is_over(place: Place) -> None:
    place.post()
    place.to("11:00:00")
    [job] = place.fetch()
    assert place.caller.delete("/v1/cron/sync").status == 200
    place.to("11:09:59")
    assert place.runs() == [(Outcome.RUNNING, "due", 1)]
    place.to("11:10:02")
    # Nothing else is due in this deployment for months.
    assert place.runs() == [(Outcome.INTERRUPTED, "due", 1)]
    assert place.report(ACK, job).code == (409, "invalid_request")


def test_an_idle_poll_with_external_workers_is_one_statement(place: Place) -> None:
    place.post()
    place.to("11:00:00")
    [_] = place.fetch()
    place.to("11:00:02")
    with CaptureQueriesContext(connection) as queries:
        place.sim.poll()
    assert len(queries) == 1


def test_a_scheduler_that_finds_the_dead_leaves_reserved_runs_alone(place: Place) -> None:
    job = place.fetched()
    place.sim.crash()
    place.sim.initialize(STORY)
    place.sim.poll()
    assert place.report(ACK, job).status == 200


def _waiting(settings: Any, *names: str) -> Simulation:
    """Return a simulation in which external runs of some tasks wait."""
    settings.DECLARATIVE_CRON = {"EXTERNAL_WORKERS": True}
    sim = Simulation(start="2024-01-01T10:10:00Z", time_zone="UTC")
    sim.initialize(STORY)
    for name in names:
        post_task(sim, {**EXTERNAL, "name": name})
    sim.advance_to("2024-01-01T11:00:01Z")
    return sim


@pytest.fixture
def locked_elsewhere(settings: Any) -> Simulation:
    """Return a simulation with a waiting run, on a database with row locks."""
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("this database locks no rows")
    return _waiting(settings, "sync")


@pytest.mark.django_db(transaction=True)
def test_two_workers_never_get_one_run(settings: Any) -> None:
    sim = _waiting(settings, *(f"t{number}" for number in range(6)))
    assert TaskRun.objects.filter(outcome=Outcome.WAITING).count() == 6
    barrier = threading.Barrier(3)

    def work() -> list[int]:
        barrier.wait(TIMEOUT)
        fetched = [external_jobs.fetch(["slow"], 1, "w", MINUTE) for _ in range(6)]
        return [run.pk for runs in fetched for run in runs]

    with ExitStack() as stack:
        workers = [stack.enter_context(elsewhere())(work) for _ in range(3)]
        fetched = [pk for each in workers for pk in each.result(TIMEOUT)]
    assert len(fetched) == len(set(fetched)) == 6
    sim.crash()


@pytest.mark.django_db(transaction=True)
def test_a_locked_run_is_not_fetched(locked_elsewhere: Simulation) -> None:
    with transaction.atomic(), elsewhere() as submit:
        list(TaskRun.objects.filter(outcome=Outcome.WAITING).select_for_update())
        found = submit(lambda: external_jobs.fetch(["slow"], 1, "w", MINUTE)).result(TIMEOUT)
    assert found == []
    locked_elsewhere.crash()


@pytest.mark.django_db(transaction=True)
def test_the_leader_ends_a_waiting_run_whose_task_was_locked(locked_elsewhere: Simulation) -> None:
    sim = locked_elsewhere
    run, act = TaskRun.objects.get(task_name="sync"), Act("gardener", sim.now)
    with transaction.atomic(), elsewhere() as submit:
        list(ScheduledTask.objects.filter(name="sync").select_for_update())
        effect = submit(lambda: manual_runs.cancel(run, act, sim.clock.database_time()))
        assert effect.result(TIMEOUT) is Effect.ASKED
    sim.advance_to("2024-01-01T11:00:10Z")
    run.refresh_from_db()
    assert run.outcome == Outcome.INTERRUPTED
    assert ScheduledTask.objects.get(name="sync").running_run is None
    assert TaskRun.objects.filter(task_name="sync").count() == 1
    sim.crash()


def test_the_end_of_a_run_is_published_after_the_commit(
    place: Place, django_capture_on_commit_callbacks: Any
) -> None:
    job = place.fetched()
    claimant = Claimant([UUID(job["reservation"])], "w1")
    time = place.sim.clock.database_time()
    with heard(signals.task_run_completed) as ended:
        with transaction.atomic():
            external_jobs.end(job["id"], claimant, Report(), time)
            transaction.set_rollback(True)
        assert ended == []
        with django_capture_on_commit_callbacks(execute=True):
            run, _ = external_jobs.end(job["id"], claimant, Report(), time)
    assert [each["run"] for each in ended] == [run.pk]


def test_the_events_of_an_external_run_are_queued(place: Place, settings: Any) -> None:
    settings.DECLARATIVE_CRON |= {"EVENT_SINK": {"url": "http://127.0.0.1:9/"}}
    job = place.fetched()
    assert place.report(ACK, job).status == 200
    told = place.events()
    assert [each["type"] for each in told] == [
        *("cron.triggered", "job.enqueued", "job.started", "job.completed")
    ]
    assert {each["data"]["job_id"] for each in told} == {job["id"]}
    assert {each["data"]["job_type"] for each in told} == {"partner.sync"}
    assert (told[2]["data"]["worker_id"], told[2]["data"]["queue"]) == ("w1", "slow")
