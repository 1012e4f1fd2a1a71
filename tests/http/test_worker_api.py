"""External workers: fetch, heartbeat, ack, nack, cancellation, and the visibility timeout."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, connections, transaction
from django.dispatch import Signal
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_declarative_cron import signals
from django_declarative_cron.core.explain import Cause
from django_declarative_cron.core.status import Status
from django_declarative_cron.models import (
    OutboxEvent,
    Outcome,
    ScheduledTask,
    TaskOverride,
    TaskRun,
)
from django_declarative_cron.runtime import clock
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
from .client import Caller

FETCH, ACK, NACK, BEAT = (f"/v1/workers/{name}" for name in ("fetch", "ack", "nack", "heartbeat"))
ENTRY = {
    "name": "sync",
    "cron": "0 * * * *",
    "type": "partner.sync",
    "args": [7],
    "options": {"queue": "slow", "tags": ["a"], "meta": {"b": 1}, "timeout": 60},
}
STORY = [{"name": "a", "cron": "0 0 1 1 *", "timezone": "UTC", "callback": "builtins.print"}]
MINUTE = timedelta(minutes=1)
SINK = {"url": "http://127.0.0.1:9/", "secret": "whsec_" + "QUJD" * 11}


def held(job: dict[str, Any]) -> dict[str, str]:
    """Return the keys by which a worker identifies a job."""
    return {"job_id": job["id"], "reservation": job["reservation"]}


def beat_of(job: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Return a heartbeat for a job."""
    known = {"active_jobs": [job["id"]], "reservations": [job["reservation"]]}
    return {"worker_id": "w1", **known, **keys}


class TakenBackError(Exception):
    """Roll a transaction back."""


@contextmanager
def listening(signal: Signal, receiver: Any) -> Iterator[None]:
    """Connect a receiver to a signal for a while."""
    signal.connect(receiver)
    try:
        yield
    finally:
        signal.disconnect(receiver)


class Place:
    """A scheduler on a virtual clock, and a worker that asks it over HTTP."""

    def __init__(self, sim: Simulation, caller: Caller) -> None:
        self.sim = sim
        self.caller = caller

    def post(self, **keys: Any) -> None:
        answer = self.caller.post("/v1/cron", {**ENTRY, **keys})
        assert answer.status in (200, 201), answer.data

    def fetch(self, **keys: Any) -> list[dict[str, Any]]:
        answer = self.caller.post(FETCH, {"queues": ["slow"], "worker_id": "w1", **keys})
        assert answer.status == 200
        found: list[dict[str, Any]] = answer.data["jobs"]
        return found

    def fetched(self) -> dict[str, Any]:
        """Register a task, and return the job of its first run."""
        self.post()
        self.to("11:00:01")
        [job] = self.fetch()
        return job

    def to(self, time: str) -> None:
        self.sim.advance_to(f"2024-01-01T{time}Z")

    def runs(self) -> list[tuple[str, str, int]]:
        runs = TaskRun.objects.filter(task_name="sync").order_by("id")
        return list(runs.values_list("outcome", "reason", "attempt"))


@pytest.fixture
def place(caller: Caller, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    settings.DECLARATIVE_CRON = {"EXTERNAL_WORKERS": True, "HTTP_RATE": 100_000}
    sim = Simulation(start="2024-01-01T10:10:30Z", time_zone="UTC")
    monkeypatch.setattr(clock.SystemClock, "now", lambda self: sim.now)
    monkeypatch.setattr(clock.SystemClock, "database_time", lambda self: sim.clock.database_time())
    sim.initialize(STORY)
    yield Place(sim, caller)
    sim.crash()


def test_without_the_option_an_unknown_type_is_refused(caller: Caller) -> None:
    assert caller.post("/v1/cron", ENTRY).code == (400, "invalid_request")
    assert caller.post(FETCH, {"queues": ["slow"]}).code == (422, "unsupported")


def test_a_run_waits_for_a_worker_and_is_done_by_it(place: Place) -> None:
    place.post()
    assert place.fetch() == []
    place.to("11:00:01")
    assert place.runs() == [(Outcome.WAITING, "due", 1)]
    assert TaskRun.objects.get(task_name="sync").started_at is None
    [job] = place.fetch()
    assert (job["type"], job["args"], job["queue"]) == ("partner.sync", [7], "slow")
    assert (job["state"], job["attempt"], job["max_attempts"]) == ("active", 1, 3)
    assert job["meta"] == {
        "b": 1,
        "cron_name": "sync",
        "cron_triggered_at": "2024-01-01T11:00:00Z",
    }
    assert (job["timeout_ms"], job["tags"]) == (60_000, ["a"])
    assert place.fetch() == []
    place.to("11:00:20")
    done = place.caller.post(ACK, {**held(job), "result": {"rows": 3}})
    assert done.data["acknowledged"] is True
    assert done.data["state"] == "completed"
    run = TaskRun.objects.get(task_name="sync")
    assert (run.outcome, run.result, run.worker) == (Outcome.SUCCEEDED, {"rows": 3}, "w1")
    assert run.finished_at is not None
    assert run.started_at is not None
    task = ScheduledTask.objects.get(name="sync")
    assert (task.running_run, task.run_count) == (None, 1)
    for path, report in ((ACK, {}), (NACK, {"error": {"code": "x", "message": "y"}})):
        again = place.caller.post(path, {**held(job), **report})
        assert again.code == (409, "invalid_request")
        assert again.data["error"]["details"]["current_state"] == "completed"
    assert TaskRun.objects.get(task_name="sync").outcome == Outcome.SUCCEEDED


def test_a_run_outlives_the_option_by_its_reservation_only(place: Place, settings: Any) -> None:
    place.post()
    place.to("11:00:01")
    assert place.fetch()
    with override_settings(DECLARATIVE_CRON={}):
        place.to("13:00:01")
        assert place.runs() == [(Outcome.INTERRUPTED, "due", 1)]
        task = ScheduledTask.objects.get(name="sync")
        assert "EXTERNAL_WORKERS is off" in task.broken_reason
    place.to("13:10:01")
    assert place.runs()[1:] == [
        (Outcome.MISSED, "broken", 0),
        (Outcome.WAITING, "orphaned", 1),
    ]
    assert ScheduledTask.objects.get(name="sync").broken_reason == ""
    [job] = place.fetch()
    assert place.caller.post(ACK, held(job)).status == 200
    place.to("14:00:01")
    assert place.runs()[-1] == (Outcome.WAITING, "due", 1)


def test_queues_are_read_in_the_order_of_the_worker(place: Place) -> None:
    place.post()
    place.post(name="first", options={"queue": "fast"})
    place.to("11:00:01")
    assert place.fetch(queues=["nothing", "here"]) == []
    found = place.fetch(queues=["fast", "slow"], count=5)
    assert [job["queue"] for job in found] == ["fast", "slow"]


def test_an_occurrence_during_a_waiting_run_is_skipped(place: Place) -> None:
    place.post()
    place.to("12:00:01")
    assert place.runs() == [(Outcome.WAITING, "due", 1), (Outcome.SKIPPED, "overlap_skip", 0)]
    [job] = place.fetch()
    assert job["created_at"] == "2024-01-01T11:00:00Z"


def test_runs_that_are_enqueued_come_one_after_the_other(place: Place) -> None:
    place.post(overlap_policy="enqueue")
    place.to("12:00:01")
    first = place.fetch(count=5)
    assert [job["created_at"] for job in first] == ["2024-01-01T11:00:00Z"]
    place.caller.post(ACK, held(first[0]))
    place.to("12:00:05")
    second = place.fetch(count=5)
    assert [job["created_at"] for job in second] == ["2024-01-01T12:00:00Z"]
    # The origin of a task does not depend on the reason of its run.
    assert set(TaskRun.objects.values_list("origin", flat=True)) == {"http"}


def test_runs_that_may_be_concurrent_are_all_offered(place: Place) -> None:
    place.post(overlap_policy="allow")
    place.to("12:00:01")
    found = place.fetch(count=5)
    assert [job["created_at"][11:16] for job in found] == ["11:00", "12:00"]
    for job in found:
        assert place.caller.post(ACK, held(job)).status == 200
    assert [outcome for outcome, *_ in place.runs()] == [Outcome.SUCCEEDED] * 2


def test_the_newest_run_takes_the_place_of_a_waiting_one(place: Place, settings: Any) -> None:
    settings.DECLARATIVE_CRON = {**settings.DECLARATIVE_CRON, "EVENT_SINK": SINK}
    place.post(overlap_policy="cancel_previous")
    place.to("12:00:01")
    assert [outcome for outcome, *_ in place.runs()] == [Outcome.CANCELLED, Outcome.WAITING]
    told = [json.loads(body) for body in OutboxEvent.objects.values_list("body", flat=True)]
    assert sorted(each["type"] for each in told) == [
        *("cron.triggered", "cron.triggered", "job.cancelled", "job.enqueued", "job.enqueued")
    ]
    [ended] = [each["data"]["job_id"] for each in told if each["type"] == "job.cancelled"]
    assert ended == told[0]["data"]["job_id"]
    [job] = place.fetch(count=5, visibility_timeout_ms=7_200_000)
    assert job["created_at"] == "2024-01-01T12:00:00Z"
    place.to("13:00:01")
    beat = place.caller.post(BEAT, beat_of(job))
    assert beat.data["jobs_to_cancel"] == [job["id"]]
    late = place.caller.post(ACK, held(job))
    assert late.data["state"] == "cancelled"


def test_a_failure_is_retried_by_the_policy_and_given_up(place: Place) -> None:
    place.post(options={"queue": "slow", "retry": {"max_attempts": 2, "jitter": False}})
    place.to("11:00:01")
    [job] = place.fetch()
    error = {"code": "handler_error", "message": "no route", "details": {"host": "x"}}
    first = place.caller.post(NACK, {**held(job), "error": error}).data
    assert (first["state"], first["attempt"], first["max_attempts"]) == ("retryable", 1, 2)
    assert first["next_attempt_at"] is not None
    place.to("11:00:10")
    [again] = place.fetch()
    assert again["id"] != job["id"]
    assert again["attempt"] == 2
    last = place.caller.post(NACK, {**held(again), "error": error}).data
    assert (last["state"], last["next_attempt_at"]) == ("discarded", None)
    assert place.caller.get(f"/v1/jobs/{again['id']}").data["job"]["state"] == "discarded"
    run = TaskRun.objects.filter(task_name="sync").latest("id")
    assert (run.error, "host" in run.traceback) == ("handler_error: no route", True)


def test_a_long_error_of_a_worker_is_kept_as_one_of_ours_is(place: Place) -> None:
    job = place.fetched()
    message = "it began, password=hunter2" + " x" * 5000 + " it ended"
    error = {"code": "bad_input", "message": message, "details": {"a": "x" * 70_000}}
    assert place.caller.post(NACK, {**held(job), "error": error}).status == 200
    run = TaskRun.objects.filter(task_name="sync").latest("id")
    assert run.error.startswith("bad_input: it began, password=*** x")
    assert run.error.endswith("x it ended")
    assert len(run.error) == 2000
    assert run.traceback.endswith("xxx'}")


def test_an_error_that_is_not_retryable_ends_it(place: Place) -> None:
    job = place.fetched()
    error = {"code": "bad_input", "message": "no", "retryable": False}
    assert place.caller.post(NACK, {**held(job), "error": error}).data["state"] == ("discarded")
    assert ScheduledTask.objects.get(name="sync").pending_retry_until is None


def test_a_silent_worker_keeps_its_run_for_ten_minutes_and_not_longer(place: Place) -> None:
    place.post()
    place.to("11:00:00")
    [job] = place.fetch()
    place.to("11:09:59")
    assert place.runs() == [(Outcome.RUNNING, "due", 1)]
    place.to("11:10:05")
    assert place.runs() == [(Outcome.INTERRUPTED, "due", 1), (Outcome.WAITING, "orphaned", 2)]
    late = place.caller.post(ACK, held(job))
    assert late.code == (409, "invalid_request")
    [again] = place.fetch()
    assert again["id"] != job["id"]


def test_heartbeats_keep_a_run(place: Place) -> None:
    place.post()
    place.to("11:00:00")
    [job] = place.fetch(visibility_timeout_ms=60_000)
    for time in ("11:00:50", "11:02:40", "11:04:30", "11:06:20"):
        place.to(time)
        beat = place.caller.post(BEAT, beat_of(job, visibility_timeout_ms=120_000))
        assert beat.data["jobs_extended"] == [job["id"]]
        assert beat.data["state"] == "running"
    assert place.runs() == [(Outcome.RUNNING, "due", 1)]
    place.to("11:08:19")
    assert place.runs() == [(Outcome.RUNNING, "due", 1)]
    place.to("11:08:25")
    assert place.runs()[0] == (Outcome.INTERRUPTED, "due", 1)


def test_only_the_holder_of_the_reservation_may_end_a_job(place: Place) -> None:
    job = place.fetched()
    other = {**held(job), "worker_id": "w2"}
    assert place.caller.post(ACK, other).code == (409, "invalid_request")
    wrong = {**held(job), "reservation": "0" * 32}
    assert place.caller.post(ACK, wrong).code == (409, "invalid_request")
    for report in (ACK, NACK):
        without = place.caller.post(report, {"job_id": job["id"], "error": {"code": "x"}})
        assert without.code == (400, "invalid_request")
        assert "`reservation` is missing" in without.data["error"]["message"]
    for beat in (
        beat_of(job, worker_id="w2"),
        beat_of(job, reservations=[]),
        beat_of(job, reservations=["0" * 32]),
    ):
        assert place.caller.post(BEAT, beat).data["jobs_extended"] == []
    alone = {"job_id": job["id"], "reservation": job["reservation"]}
    assert place.caller.post(BEAT, alone).data["jobs_extended"] == [job["id"]]
    right = {**held(job), "worker_id": "w1"}
    assert place.caller.post(ACK, right).status == 200


def test_a_waiting_job_is_cancelled_and_an_active_one_is_asked_to_end(
    place: Place,
) -> None:
    place.post()
    place.to("11:00:01")
    run = TaskRun.objects.get(task_name="sync")
    name = str(name_of(run.pk, run.scheduled_for))
    assert place.caller.get(f"/v1/jobs/{name}").data["job"]["state"] == "available"
    assert place.caller.delete(f"/v1/jobs/{name}").data["job"]["state"] == "cancelled"
    assert place.fetch() == []
    assert place.caller.delete(f"/v1/jobs/{name}").code == (409, "invalid_request")
    assert ScheduledTask.objects.get(name="sync").running_run is None
    place.to("12:00:01")
    [job] = place.fetch()
    asked = place.caller.delete(f"/v1/jobs/{job['id']}").data["job"]
    assert (asked["state"], asked["cancel_requested"]) == ("active", True)
    place.caller.delete(f"/v1/jobs/{job['id']}")
    told = TaskOverride.objects.values_list("kind", "task_name", "author", "note")
    assert list(told) == [("cancel", "sync", "token everything", "HTTP")] * 2
    assert place.caller.post(ACK, held(job)).data["state"] == "cancelled"


def test_a_cancellation_is_one_transaction(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> Any:
        raise DatabaseError("the second half fails")

    place.post()
    place.to("11:00:01")
    run = TaskRun.objects.get(task_name="sync")
    name = str(name_of(run.pk, run.scheduled_for))
    with monkeypatch.context() as patch:
        for kind in ("record", "record_here"):
            patch.setattr(results, kind, refuse)
        assert place.caller.delete(f"/v1/jobs/{name}").code == (503, "backend_error")
    assert place.runs() == [(Outcome.WAITING, "due", 1)]
    assert not TaskOverride.objects.exists()
    [job] = place.fetch()
    assert job["id"] == name


def test_a_waiting_run_is_shown_and_may_be_cancelled(place: Place) -> None:
    place.post()
    place.to("11:00:01")
    task, out = ScheduledTask.objects.get(name="sync"), StringIO()
    now = place.sim.now
    assert read(task, now).status is Status.QUEUED
    [listed] = with_runs(ScheduledTask.objects.filter(name="sync"), place.sim.now)
    with CaptureQueriesContext(connection) as queries:
        assert read(listed, now).status is Status.QUEUED
    assert len(queries) == 0
    mine = ScheduledTask.objects.filter(name="sync")
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


def test_a_name_of_a_job_outlives_another_secret_key(place: Place, settings: Any) -> None:
    job = place.fetched()
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another" * 10
    run = TaskRun.objects.get(task_name="sync")
    assert str(name_of(run.pk, run.scheduled_for)) != job["id"]
    assert place.caller.post(BEAT, beat_of(job)).data["state"] == "running"
    assert place.caller.post(ACK, held(job)).status == 200
    settings.SECRET_KEY_FALLBACKS = []
    assert place.caller.get(f"/v1/jobs/{job['id']}").code == (404, "not_found")


def test_only_the_worker_of_a_job_gets_its_secrets(place: Place) -> None:
    meta = {"partner_token": "s3cret", "b": 1}
    place.post(args=[{"api_key": "s3cret", "site": 7}], options={**ENTRY["options"], "meta": meta})
    place.to("11:00:01")
    [job] = place.fetch()
    assert job["args"] == [{"api_key": "s3cret", "site": 7}]
    assert job["meta"]["partner_token"] == "s3cret"
    for seen in (place.caller.get, place.caller.delete):
        shown = seen(f"/v1/jobs/{job['id']}").data["job"]
        assert "reservation" not in shown
        assert shown["reserved_until"] == job["reserved_until"]
        assert "s3cret" not in str(shown)
        assert shown["args"][0]["site"] == 7
        assert shown["meta"]["b"] == 1


def test_the_cancellation_of_an_enqueued_job_is_published(
    place: Place, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    settings.DECLARATIVE_CRON = {
        **settings.DECLARATIVE_CRON,
        "EVENT_SINK": SINK,
    }
    heard: list[dict[str, Any]] = []

    def listen(**values: Any) -> None:
        heard.append(values)

    signals.task_run_cancel_requested.connect(listen)
    place.post(overlap_policy="enqueue")
    place.to("12:00:01")
    first, behind = TaskRun.objects.filter(task_name="sync").order_by("id")
    name = str(name_of(behind.pk, behind.scheduled_for))
    with django_capture_on_commit_callbacks(execute=True):
        told = place.caller.delete(f"/v1/jobs/{name}").data["job"]
    signals.task_run_cancel_requested.disconnect(listen)
    assert told["state"] == "cancelled"
    assert place.caller.delete(f"/v1/jobs/{name}").code == (409, "invalid_request")
    last = OutboxEvent.objects.order_by("pk").last()
    assert last is not None
    assert last.type == "job.cancelled"
    data = json.loads(last.body)["data"]
    assert (data["job_id"], data["reason"]) == (name, "requested")
    assert [(each["run"], each["waits"]) for each in heard] == [(behind.pk, True)]
    [job] = place.fetch()
    assert place.caller.post(ACK, held(job)).status == 200
    place.to("12:10")
    assert TaskRun.objects.get(pk=first.pk).outcome == Outcome.SUCCEEDED
    assert place.fetch() == []


@pytest.mark.parametrize(
    "name", ["x", "0" * 32, "019414d4-8b2e-7c3a-b5d1-f0e2a3b4c5d6", "a" * 400, "%00"]
)
def test_an_unknown_job_id_is_not_found(place: Place, name: str) -> None:
    assert place.caller.get(f"/v1/jobs/{name}").code == (404, "not_found")
    assert place.caller.delete(f"/v1/jobs/{name}").code == (404, "not_found")
    if len(name) < 256 and "%" not in name:
        reported = {"job_id": name, "reservation": "0" * 32}
        assert place.caller.post(ACK, reported).code == (404, "not_found")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (FETCH, {"queues": "slow"}),
        (FETCH, {"queues": [1]}),
        (FETCH, {"queues": ["a"], "count": 0}),
        (FETCH, {"queues": ["a"], "count": True}),
        (FETCH, {"queues": ["a"], "visibility_timeout_ms": 1}),
        (FETCH, {"queues": ["a"], "worker_id": 7}),
        (ACK, {}),
        (ACK, {"job_id": 7}),
        (ACK, {"job_id": "x", "reservation": "y"}),
        (NACK, {"job_id": "x"}),
        (NACK, {"job_id": "x", "error": {"code": 1}}),
        (NACK, {"job_id": "x", "error": {"code": "a", "retryable": "no"}}),
        (BEAT, {"active_jobs": "x"}),
        (BEAT, {"active_jobs": [1]}),
    ],
)
def test_an_invalid_report_is_refused(place: Place, path: str, body: Any) -> None:
    assert place.caller.post(path, body).code == (400, "invalid_request")


def test_another_schedule_leaves_a_waiting_run_to_its_worker(place: Place) -> None:
    place.post()
    place.to("11:00:01")
    place.post(cron="30 * * * *")
    [job] = place.fetch()
    assert place.caller.post(ACK, held(job)).status == 200
    task = ScheduledTask.objects.get(name="sync")
    assert (task.running_run, task.last_success_at) == (None, None)


def test_a_run_that_waits_ends_with_the_removal_of_its_task(place: Place, settings: Any) -> None:
    settings.DECLARATIVE_CRON = {**settings.DECLARATIVE_CRON, "EVENT_SINK": SINK}
    place.post()
    place.to("11:00:01")
    assert place.caller.delete("/v1/cron/sync").status == 200
    assert place.runs() == [(Outcome.CANCELLED, "due", 1)]
    assert place.fetch() == []
    told = [json.loads(body) for body in OutboxEvent.objects.values_list("body", flat=True)]
    assert [each["data"]["cron_name"] for each in told if each["type"] == "job.cancelled"] == [
        "sync"
    ]
    place.to("11:30:00")
    place.post()
    place.to("12:00:01")
    assert place.runs() == [(Outcome.CANCELLED, "due", 1), (Outcome.WAITING, "due", 1)]
    assert ScheduledTask.objects.get(name="sync").broken_reason == ""
    assert len(place.fetch()) == 1


@pytest.mark.parametrize("is_fetched", [True, False])
def test_the_run_of_a_lost_row_still_overlaps(place: Place, is_fetched: bool) -> None:
    place.post()
    place.to("11:00:01")
    fetched = place.fetch(visibility_timeout_ms=7_200_000) if is_fetched else []
    ScheduledTask.objects.filter(name="sync").delete()
    place.post()
    place.to("12:00:01")
    assert len(fetched) == is_fetched
    assert ScheduledTask.objects.get(name="sync").broken_reason == ""
    assert [reason for _, reason, _ in place.runs()] == ["due", "overlap_skip"]


def test_settings_that_take_a_task_over_do_not_wait_for_a_worker(place: Place) -> None:
    place.post()
    place.to("11:00:01")
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
    assert place.caller.post(ACK, held(job)).code == (409, "invalid_request")


def test_an_idle_poll_with_external_workers_is_one_statement(place: Place) -> None:
    place.post()
    place.to("11:00:00")
    [_] = place.fetch()
    place.to("11:00:02")
    with CaptureQueriesContext(connection) as queries:
        place.sim.poll()
    assert len(queries) == 1


def test_coalescing_is_not_for_external_workers(place: Place) -> None:
    answer = place.caller.post("/v1/cron", {**ENTRY, "overlap_policy": "coalesce"})
    assert answer.code == (400, "invalid_request")


@pytest.mark.parametrize(
    "change", [{"options": {"timeout": 30}}, {"overlap_policy": "cancel_previous"}]
)
def test_warnings_about_threads_do_not_apply_to_external_workers(
    place: Place, change: dict[str, Any]
) -> None:
    answer = place.caller.post("/v1/cron", {**ENTRY, **change})
    assert (answer.status, answer.data.get("warnings")) == (201, None)


def test_a_scheduler_that_finds_the_dead_leaves_reserved_runs_alone(place: Place) -> None:
    job = place.fetched()
    place.sim.crash()
    place.sim.initialize(STORY)
    place.sim.poll()
    assert place.caller.post(ACK, held(job)).status == 200


@pytest.mark.django_db(transaction=True)
def test_two_workers_never_get_one_run(settings: Any) -> None:
    from django_declarative_cron import conf
    from django_declarative_cron.store import posted_tasks

    settings.DECLARATIVE_CRON = {"EXTERNAL_WORKERS": True}
    start = datetime(2024, 1, 1, 10, 10, tzinfo=UTC)
    sim = Simulation(start=start, time_zone="UTC")
    sim.initialize(STORY)
    for number in range(6):
        declaration, _ = conf.posted({**ENTRY, "name": f"t{number}"})
        assert declaration is not None
        posted_tasks.post(declaration, sim.now)
    sim.advance_to("2024-01-01T11:00:01Z")
    assert TaskRun.objects.filter(outcome=Outcome.WAITING).count() == 6
    found: list[list[int]] = []
    barrier = threading.Barrier(3)

    def work(name: str) -> None:
        barrier.wait(TIMEOUT)
        mine: list[int] = []
        try:
            for _ in range(6):
                mine += [run.pk for run in external_jobs.fetch(["slow"], 1, name, MINUTE)]
        finally:
            connections.close_all()
        found.append(mine)

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    fetched = [pk for mine in found for pk in mine]
    assert len(fetched) == len(set(fetched)) == 6
    sim.crash()


def _waiting_beside_others(settings: Any) -> Simulation:
    """Return a simulation with a waiting run, on a database with row locks."""
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("this database locks no rows")
    settings.DECLARATIVE_CRON = {"EXTERNAL_WORKERS": True}
    sim = Simulation(start="2024-01-01T10:10:00Z", time_zone="UTC")
    sim.initialize(STORY)
    post_task(sim, ENTRY)
    sim.advance_to("2024-01-01T11:00:01Z")
    return sim


@pytest.mark.django_db(transaction=True)
def test_a_locked_run_is_not_fetched(settings: Any) -> None:
    sim = _waiting_beside_others(settings)
    with transaction.atomic(), elsewhere() as submit:
        list(TaskRun.objects.filter(outcome=Outcome.WAITING).select_for_update())
        found = submit(lambda: external_jobs.fetch(["slow"], 1, "w", MINUTE)).result(TIMEOUT)
    assert found == []
    sim.crash()


@pytest.mark.django_db(transaction=True)
def test_the_leader_ends_a_waiting_run_whose_task_was_locked(settings: Any) -> None:
    sim = _waiting_beside_others(settings)
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
    heard: list[int] = []

    def listen(run: int, **values: Any) -> None:
        heard.append(run)

    job = place.fetched()
    time = place.sim.clock.database_time()
    with listening(signals.task_run_completed, listen):
        # A rollback publishes nothing.
        with suppress(TakenBackError), transaction.atomic():
            external_jobs.end(job["id"], Claimant([UUID(job["reservation"])], "w1"), Report(), time)
            raise TakenBackError
        assert heard == []
        with django_capture_on_commit_callbacks(execute=True):
            run, _ = external_jobs.end(
                job["id"], Claimant([UUID(job["reservation"])], "w1"), Report(), time
            )
    assert heard == [run.pk]


def test_the_events_of_an_external_run_are_queued(place: Place, settings: Any) -> None:
    settings.DECLARATIVE_CRON |= {"EVENT_SINK": {"url": "http://127.0.0.1:9/"}}
    place.post()
    place.to("11:00:01")
    (job,) = place.fetch()
    assert place.caller.post(ACK, held(job)).status == 200
    told = [json.loads(body) for body in OutboxEvent.objects.values_list("body", flat=True)]
    assert [each["type"] for each in told] == [
        *("cron.triggered", "job.enqueued", "job.started", "job.completed")
    ]
    assert {each["data"]["job_id"] for each in told} == {job["id"]}
    assert {each["data"]["job_type"] for each in told} == {"partner.sync"}
    assert (told[2]["data"]["worker_id"], told[2]["data"]["queue"]) == ("w1", "slow")
