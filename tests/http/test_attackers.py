"""Attacks with each kind of token and user, and without any, as the page "Security" has them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from django_declarative_cron.core.http_api import Right
from django_declarative_cron.models import Outcome, ScheduledTask, TaskOverride, TaskRun
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.store import access_tokens
from django_declarative_cron.store.outbox import name_of
from django_declarative_cron.testing import Simulation

from .client import ENTRY, Answer, Caller

OURS = {
    "name": "ours",
    "cron": "0 9 * * *",
    "timezone": "UTC",
    "callback": "tests.http.reports.tasks.generate",
    "args": [{"api_key": "s3cret"}],
}
WORKERS = ("fetch", "ack", "nack", "heartbeat")


def token(*granted: Right) -> Caller:
    return Caller(str(access_tokens.create("-".join(granted), granted, system_clock.now())))


def user(*codenames: str) -> Caller:
    made = get_user_model().objects.create_user("-".join(codenames), password="pw")
    made.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(made)
    return Caller(client=client)


@pytest.fixture
def job(binding: None, settings: Any) -> str:
    """Return the job id of an active run of a task of the settings."""
    settings.DECLARATIVE_CRON = {"EXTERNAL_WORKERS": True, "HTTP_RATE": 100_000}
    sim = Simulation(start=system_clock.now(), time_zone="UTC")
    sim.initialize([OURS])
    task = ScheduledTask.objects.get()
    run = TaskRun.objects.create(
        scheduler_id=task.scheduler_id,
        task_name="ours",
        origin="settings",
        scheduled_for=sim.now,
        started_at=sim.now,
        outcome=Outcome.RUNNING,
    )
    return str(name_of(run.pk, run.scheduled_for))


def acts_on(caller: Caller, job: str) -> dict[str, Answer]:
    """Return the responses to every request that would change an active run."""
    reservation = str(uuid4())
    report = {"job_id": job, "reservation": reservation, "error": {"code": "x"}}
    beat = {"active_jobs": [job], "reservations": [reservation], "worker_id": "w"}
    bodies = ({"queues": ["default", ""]}, report, report, beat)
    told = {
        name: caller.post(f"/v1/workers/{name}", body)
        for name, body in zip(WORKERS, bodies, strict=True)
    }
    return {"cancel": caller.delete(f"/v1/jobs/{job}"), **told}


def test_a_registering_token_or_user_cannot_touch_a_run_of_settings(job: str) -> None:
    before = TaskRun.objects.values().get()
    for caller in (token(Right.REGISTER), user("register_scheduledtask")):
        told = acts_on(caller, job)
        assert told.pop("cancel").code == (409, "duplicate")
        assert {answer.code for answer in told.values()} == {(403, "forbidden")}
    assert TaskRun.objects.values().get() == before
    assert not TaskOverride.objects.exists()


def test_a_working_token_or_user_cannot_touch_a_run_of_settings(job: str) -> None:
    before = TaskRun.objects.values().get()
    for caller in (token(Right.WORK), user("work_taskrun")):
        told = acts_on(caller, job)
        assert told["cancel"].code == (403, "forbidden")
        assert told["fetch"].data == {"jobs": []}
        assert told["ack"].code == told["nack"].code == (404, "not_found")
        assert told["heartbeat"].data["jobs_extended"] == []
        assert caller.get(f"/v1/jobs/{job}").code == (403, "forbidden")
    assert TaskRun.objects.values().get() == before


def test_every_right_together_leaves_settings_and_their_runs_alone(job: str) -> None:
    caller = token(*Right)
    tasks, before = ScheduledTask.objects.values().get(), TaskRun.objects.values().get()
    told = acts_on(caller, job)
    assert told["cancel"].code == (409, "duplicate")
    assert told["ack"].code == told["nack"].code == (404, "not_found")
    assert told["heartbeat"].data["jobs_extended"] == []
    changed = {**ENTRY, "name": "ours", "cron": "* * * * *"}
    assert caller.post("/v1/cron", changed).code == (409, "duplicate")
    assert caller.patch("/v1/cron/ours", {"enabled": False}).code == (409, "duplicate")
    assert caller.delete("/v1/cron/ours").code == (409, "duplicate")
    assert ScheduledTask.objects.values().get() == tasks
    assert TaskRun.objects.values().get() == before


def test_a_registering_token_sees_no_declaration_of_settings(job: str) -> None:
    caller = token(Right.REGISTER)
    for answer in (
        caller.post("/v1/cron", {**ENTRY, "name": "ours"}),
        caller.patch("/v1/cron/ours", {"enabled": True}),
        caller.delete("/v1/cron/ours"),
        caller.delete(f"/v1/jobs/{job}"),
        caller.get("/v1/cron/ours"),
        caller.get("/v1/cron"),
        caller.get(f"/v1/jobs/{job}"),
    ):
        text = str(answer.data)
        assert not any(word in text for word in ("s3cret", "0 9 * * *", "reports.tasks"))


def test_a_reading_token_or_user_sees_no_secret_and_changes_nothing(job: str) -> None:
    for caller in (token(Right.READ), user("view_scheduledtask")):
        for path in ("/v1/cron", "/v1/cron/ours", f"/v1/jobs/{job}"):
            answer = caller.get(path)
            assert answer.status == 200
            assert "s3cret" not in str(answer.data)
        told = acts_on(caller, job)
        assert {answer.code for answer in told.values()} == {(403, "forbidden")}
        assert caller.post("/v1/cron", ENTRY).code == (403, "forbidden")
    assert ScheduledTask.objects.count() == 1


def test_an_unauthenticated_caller_cannot_find_out_which_names_exist(job: str) -> None:
    stranger = Caller()
    absent = str(name_of(2**40, system_clock.now()))
    for path in ("/v1/cron/{}", "/v1/jobs/{}"):
        there, gone = ("ours", "gone") if "cron" in path else (job, absent)
        for method in ("GET", "PATCH", "DELETE", "OPTIONS", "PUT", "HEAD"):
            told = [stranger.send(method, path.format(name), {}) for name in (there, gone)]
            assert told[0].status == told[1].status
            for answer in told:
                answer.data.get("error", {}).pop("request_id", None)
            assert told[0].data == told[1].data


def test_an_operators_permissions_open_nothing_over_http(job: str) -> None:
    operator = user("pause_scheduledtask", "run_scheduledtask", "cancel_taskrun", "add_accesstoken")
    told = acts_on(operator, job)
    assert {answer.code for answer in told.values()} == {(403, "forbidden")}
    assert operator.get("/v1/cron").code == (403, "forbidden")
    assert operator.post("/v1/cron", ENTRY).code == (403, "forbidden")
