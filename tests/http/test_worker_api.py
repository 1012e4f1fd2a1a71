"""External workers over HTTP: fetch, heartbeat, ack, nack, cancellation, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from django_declarative_cron.models import (
    Outcome,
    ScheduledTask,
    TaskOverride,
    TaskRun,
)
from django_declarative_cron.store.outbox import name_of

from .conftest import ACK, BEAT, EXTERNAL, FETCH, NACK, Caller, Place, beat_of


def test_without_the_option_an_unknown_type_is_refused(caller: Caller) -> None:
    assert caller.post("/v1/cron", EXTERNAL).code == (400, "invalid_request")
    assert caller.post(FETCH, {"queues": ["slow"]}).code == (422, "unsupported")


def test_a_run_waits_for_a_worker_and_is_done_by_it(place: Place) -> None:
    place.due()
    assert place.runs() == [(Outcome.WAITING, "due", 1)]
    assert TaskRun.objects.get(task_name="sync").started_at is None
    [job] = place.fetch()
    assert (job["type"], job["args"], job["queue"]) == ("partner.sync", [7], "slow")
    assert (job["state"], job["attempt"], job["max_attempts"]) == ("active", 1, 3)
    triggered = {"cron_name": "sync", "cron_triggered_at": "2024-01-01T11:00:00Z"}
    assert job["meta"] == {"b": 1, **triggered}
    assert (job["timeout_ms"], job["tags"]) == (60_000, ["a"])
    assert place.fetch() == []
    place.to("11:00:20")
    done = place.report(ACK, job, result={"rows": 3}).data
    assert (done["acknowledged"], done["state"]) == (True, "completed")
    run = TaskRun.objects.get(task_name="sync")
    assert (run.outcome, run.result, run.worker) == (Outcome.SUCCEEDED, {"rows": 3}, "w1")
    assert None not in (run.started_at, run.finished_at)
    task = ScheduledTask.objects.get(name="sync")
    assert (task.running_run, task.run_count) == (None, 1)
    for path in (ACK, NACK):
        again = place.report(path, job, error={"code": "x", "message": "y"})
        assert again.code == (409, "invalid_request")
        assert again.data["error"]["details"]["current_state"] == "completed"
    assert TaskRun.objects.get(task_name="sync").outcome == Outcome.SUCCEEDED


def test_queues_are_read_in_the_order_of_the_worker(place: Place) -> None:
    place.post(name="first", options={"queue": "fast"})
    place.due()
    assert place.fetch(queues=["nothing", "here"]) == []
    found = place.fetch(queues=["fast", "slow"], count=5)
    assert [job["queue"] for job in found] == ["fast", "slow"]


def test_a_failure_is_retried_by_the_policy_and_given_up(place: Place) -> None:
    job = place.fetched(options={"queue": "slow", "retry": {"max_attempts": 2, "jitter": False}})
    error = {"code": "handler_error", "message": "no route", "details": {"host": "x"}}
    first = place.report(NACK, job, error=error).data
    assert (first["state"], first["attempt"], first["max_attempts"]) == ("retryable", 1, 2)
    assert first["next_attempt_at"] is not None
    place.to("11:00:10")
    [again] = place.fetch()
    assert (again["id"] != job["id"], again["attempt"]) == (True, 2)
    last = place.report(NACK, again, error=error).data
    assert (last["state"], last["next_attempt_at"]) == ("discarded", None)
    assert place.caller.get(f"/v1/jobs/{again['id']}").data["job"]["state"] == "discarded"
    run = TaskRun.objects.filter(task_name="sync").latest("id")
    assert (run.error, "host" in run.traceback) == ("handler_error: no route", True)


def test_a_long_error_of_a_worker_is_kept_as_one_of_ours_is(place: Place) -> None:
    job = place.fetched()
    message = "it began, password=hunter2" + " x" * 5000 + " it ended"
    error = {"code": "bad_input", "message": message, "details": {"a": "x" * 70_000}}
    assert place.report(NACK, job, error=error).status == 200
    run = TaskRun.objects.filter(task_name="sync").latest("id")
    assert run.error.startswith("bad_input: it began, password=*** x")
    assert run.error.endswith("x it ended")
    assert len(run.error) == 2000
    assert run.traceback.endswith("xxx'}")


def test_an_error_that_is_not_retryable_ends_it(place: Place) -> None:
    job = place.fetched()
    error = {"code": "bad_input", "message": "no", "retryable": False}
    assert place.report(NACK, job, error=error).data["state"] == ("discarded")
    assert ScheduledTask.objects.get(name="sync").pending_retry_until is None


def test_heartbeats_keep_a_run(place: Place) -> None:
    place.post()
    place.to("11:00:00")
    [job] = place.fetch(visibility_timeout_ms=60_000)
    for time in ("11:00:50", "11:02:40", "11:04:30", "11:06:20"):
        place.to(time)
        beat = place.caller.post(BEAT, beat_of(job, visibility_timeout_ms=120_000))
        assert (beat.data["jobs_extended"], beat.data["state"]) == ([job["id"]], "running")
    assert place.runs() == [(Outcome.RUNNING, "due", 1)]
    place.to("11:08:19")
    assert place.runs() == [(Outcome.RUNNING, "due", 1)]
    place.to("11:08:25")
    assert place.runs()[0] == (Outcome.INTERRUPTED, "due", 1)


def test_only_the_holder_of_the_reservation_may_end_a_job(place: Place) -> None:
    job = place.fetched()
    for other in ({"worker_id": "w2"}, {"reservation": "0" * 32}):
        assert place.report(ACK, job, **other).code == (409, "invalid_request")
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
    assert place.report(BEAT, job).data["jobs_extended"] == [job["id"]]
    assert place.report(ACK, job, worker_id="w1").status == 200


def test_a_waiting_job_is_cancelled_and_an_active_one_is_asked_to_end(place: Place) -> None:
    name = place.due()
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
    assert place.report(ACK, job).data["state"] == "cancelled"


def test_a_name_of_a_job_outlives_another_secret_key(place: Place, settings: Any) -> None:
    job = place.fetched()
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another" * 10
    run = TaskRun.objects.get(task_name="sync")
    assert str(name_of(run.pk, run.scheduled_for)) != job["id"]
    assert place.caller.post(BEAT, beat_of(job)).data["state"] == "running"
    assert place.report(ACK, job).status == 200
    settings.SECRET_KEY_FALLBACKS = []
    assert place.caller.get(f"/v1/jobs/{job['id']}").code == (404, "not_found")


def test_only_the_worker_of_a_job_gets_its_secrets(place: Place) -> None:
    meta, args = {"partner_token": "s3cret", "b": 1}, [{"api_key": "s3cret", "site": 7}]
    job = place.fetched(args=args, options={**EXTERNAL["options"], "meta": meta})
    assert job["args"] == args
    assert job["meta"]["partner_token"] == "s3cret"
    for seen in (place.caller.get, place.caller.delete):
        shown = seen(f"/v1/jobs/{job['id']}").data["job"]
        assert "reservation" not in shown
        assert shown["reserved_until"] == job["reserved_until"]
        assert "s3cret" not in str(shown)
        assert (shown["args"][0]["site"], shown["meta"]["b"]) == (7, 1)


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


def test_coalescing_is_not_for_external_workers(place: Place) -> None:
    answer = place.caller.post("/v1/cron", {**EXTERNAL, "overlap_policy": "coalesce"})
    assert answer.code == (400, "invalid_request")


@pytest.mark.parametrize(
    "change", [{"options": {"timeout": 30}}, {"overlap_policy": "cancel_previous"}]
)
def test_warnings_about_threads_do_not_apply_to_external_workers(
    place: Place, change: dict[str, Any]
) -> None:
    answer = place.caller.post("/v1/cron", {**EXTERNAL, **change})
    assert (answer.status, answer.data.get("warnings")) == (201, None)
