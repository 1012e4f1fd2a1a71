"""Tokens with rights, users with permissions, attacks with each (docs/security.md), limits."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from django_declarative_cron.core import http_api
from django_declarative_cron.core.http_api import Right, Token, read_token
from django_declarative_cron.http import throttling
from django_declarative_cron.models import (
    AccessToken,
    Outcome,
    ScheduledTask,
    TaskOverride,
    TaskRun,
)
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.store import access_tokens
from django_declarative_cron.store.outbox import name_of
from django_declarative_cron.testing import Simulation

from .conftest import ENTRY, NOW, Answer, Caller, token, user

LIST = "/v1/cron"


ACTS = {
    Right.READ: [
        ("GET", "/manifest"),
        ("GET", "/openapi.json"),
        ("GET", "/v1/health"),
        ("GET", LIST),
        ("GET", "/v1/cron/daily"),
        ("GET", "/v1/jobs/x"),
    ],
    Right.REGISTER: [
        ("POST", LIST),
        ("PATCH", "/v1/cron/daily"),
        ("DELETE", "/v1/cron/daily"),
        ("DELETE", "/v1/jobs/x"),
    ],
    Right.WORK: [("POST", f"/v1/workers/{name}") for name in ("fetch", "ack", "nack", "heartbeat")],
}


@pytest.mark.parametrize(("method", "path"), [act for acts in ACTS.values() for act in acts])
def test_each_request_needs_credentials(
    binding: None, settings: Any, method: str, path: str
) -> None:
    settings.DECLARATIVE_CRON = {"EXTERNAL_WORKERS": True}
    for given in ("", "x", "ddc_0123456789ab_" + "A" * 43, "ddc__", "a b"):
        answer = Caller(given).send(method, path, ENTRY)
        assert answer.code == (401, "unauthenticated")
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="ojs"'


def test_no_part_of_a_token_that_is_secret_is_stored(binding: None) -> None:
    made = token("t", Right.READ)
    parts = read_token(made)
    assert parts is not None
    row = AccessToken.objects.get()
    stored = " ".join(str(value) for value in row.__dict__.values())
    assert parts.secret not in stored
    assert row.digest == hashlib.sha256(parts.secret.encode()).hexdigest()
    assert len(parts.secret) == 43


def test_secrets_are_compared_in_constant_time(
    binding: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, Any]] = []
    real = http_api.hmac.compare_digest
    monkeypatch.setattr(
        http_api.hmac, "compare_digest", lambda a, b: seen.append((a, b)) or real(a, b)
    )
    made = read_token(token("t", Right.READ))
    assert made is not None
    assert Caller(str(Token(made.key, "B" * 43))).get(LIST).status == 401
    # A token with an unknown public part is compared in the same way.
    assert Caller(str(Token("0" * 12, "B" * 43))).get(LIST).status == 401
    assert [len(b) for _, b in seen] == [64, 64]


def test_a_token_ends_by_time_and_by_being_revoked(binding: None) -> None:
    now = system_clock.now()
    old = Caller(token("old", Right.READ, expires_at=now - timedelta(seconds=1)))
    new = Caller(token("new", Right.READ, expires_at=now + timedelta(hours=1)))
    assert old.get(LIST).status == 401
    assert new.get(LIST).status == 200
    assert access_tokens.revoke("new", now) is True
    assert new.get(LIST).status == 401
    assert access_tokens.revoke("new", now) is False
    with pytest.raises(access_tokens.TakenError):
        token("new")


def test_the_last_use_is_known_to_the_minute(binding: None) -> None:
    caller = Caller(token("t", Right.READ))
    caller.get(LIST)
    first = AccessToken.objects.get().last_used_at
    assert first is not None
    caller.get(LIST)
    assert AccessToken.objects.get().last_used_at == first


# --- users ---


def test_a_user_with_the_permission_registers(binding: None) -> None:
    caller = user("register_scheduledtask")
    assert caller.post(LIST, ENTRY).status == 201
    assert caller.get(LIST).code == (403, "forbidden")


def test_a_session_needs_a_csrf_token_and_a_bearer_does_not(binding: None) -> None:
    session = user("register_scheduledtask", "view_scheduledtask", strict=True)
    assert session.get(LIST).status == 200
    for refused in (
        session.post(LIST, ENTRY),
        session.patch("/v1/cron/a", {"enabled": True}),
        session.delete("/v1/cron/a"),
    ):
        assert refused.code == (403, "forbidden")
        assert "CSRF" in refused.data["error"]["message"]
    secret = "a" * 32
    session.client.cookies["csrftoken"] = secret
    assert session.post(LIST, ENTRY, X_CSRFToken=secret).status == 201
    bearer = Caller(token("t", Right.REGISTER), client=Client(enforce_csrf_checks=True))
    assert bearer.post(LIST, ENTRY).status == 200


def test_an_invalid_token_is_not_saved_by_a_session(binding: None) -> None:
    client = user("view_scheduledtask").client
    assert Caller("ddc_x", client=client).get(LIST).status == 401


def test_a_form_is_not_read_for_its_csrf_token(binding: None) -> None:
    session = user("register_scheduledtask", strict=True)
    answer = session.send("POST", LIST, b"a=1", content_type="application/x-www-form-urlencoded")
    assert answer.code == (415, "unsupported_media_type")


@pytest.mark.parametrize("granted", [*Right, None])
def test_a_right_allows_its_own_acts_and_no_other(
    binding: None, settings: Any, granted: Right | None
) -> None:
    settings.DECLARATIVE_CRON = {"EXTERNAL_WORKERS": True}
    caller = Caller(token("t", *([] if granted is None else [granted])))
    for right, acts in ACTS.items():
        for method, path in acts:
            answer = caller.send(method, path, ENTRY)
            if right is granted:
                assert answer.status != 403, (method, path)
            else:
                assert answer.code == (403, "forbidden"), (method, path)
                assert answer.data["error"]["details"] == {"right": right.value}


@pytest.mark.parametrize("is_admin", [True, False])
def test_without_admin_actions_users_may_only_read(
    binding: None, settings: Any, is_admin: bool
) -> None:
    settings.DECLARATIVE_CRON = {"ADMIN_ACTIONS": False, "EXTERNAL_WORKERS": True}
    every = ("view_scheduledtask", "register_scheduledtask", "work_taskrun")
    caller = user(*every, is_superuser=is_admin)
    assert caller.get(LIST).status == 200
    for refused in (
        caller.post(LIST, ENTRY),
        caller.patch("/v1/cron/daily", {"enabled": False}),
        caller.delete("/v1/cron/daily"),
        caller.delete("/v1/jobs/x"),
        caller.post("/v1/workers/fetch", {}),
    ):
        assert refused.code == (403, "forbidden")
    assert Caller(token("t", Right.REGISTER)).post(LIST, ENTRY).status == 201


def test_without_the_right_to_read_responses_have_no_declaration(binding: None) -> None:
    blind = Caller(token("t", Right.REGISTER))
    state = {"name", "enabled", "last_run_at", "next_run_at", "run_count", "created_at"}
    for answer in (
        blind.post(LIST, ENTRY),
        blind.post(LIST, ENTRY),
        blind.patch("/v1/cron/daily", {"enabled": False}),
    ):
        assert answer.status in (200, 201)
        assert set(answer.data["cron_job"]) == set(answer.data["cron"]) == state
    assert set(blind.delete("/v1/cron/daily").data["cron"]) == state


# --- attacks on a task of the settings and its active run ---

WORKERS = ("fetch", "ack", "nack", "heartbeat")
FORBIDDEN, ABSENT, OWNED = (403, "forbidden"), (404, "not_found"), (409, "duplicate")


@pytest.fixture
def job(binding: None, settings: Any) -> str:
    """Return the job id of an active run of a task of the settings."""
    settings.DECLARATIVE_CRON = {"EXTERNAL_WORKERS": True, "HTTP_RATE": 100_000}
    sim = Simulation(start=system_clock.now(), time_zone="UTC")
    entry = {"name": "ours", "cron": "0 9 * * *", "args": [{"api_key": "s3cret"}]}
    sim.initialize([{**entry, "callback": "tests.http.reports.tasks.generate"}])
    run = TaskRun.objects.create(
        scheduler_id=ScheduledTask.objects.get().scheduler_id,
        task_name="ours",
        origin="settings",
        scheduled_for=sim.now,
        started_at=sim.now,
        outcome=Outcome.RUNNING,
    )
    return str(name_of(run.pk, run.scheduled_for))


def acts_on(caller: Caller, job: str) -> list[Any]:
    """Return the responses to every request that would change an active run."""
    reservation = str(uuid4())
    report = {"job_id": job, "reservation": reservation, "error": {"code": "x"}}
    beat = {"active_jobs": [job], "reservations": [reservation], "worker_id": "w"}
    bodies = ({"queues": ["default", ""]}, report, report, beat)
    posts = zip(WORKERS, bodies, strict=True)
    told = [caller.post(f"/v1/workers/{name}", body) for name, body in posts]
    return [_short(each) for each in (caller.delete(f"/v1/jobs/{job}"), *told)]


def _short(answer: Answer) -> Any:
    taken = answer.data.get("jobs", answer.data.get("jobs_extended"))
    return answer.code if answer.status >= 400 else taken


@pytest.mark.parametrize(
    ("rights", "permissions", "answers"),
    [
        ([Right.REGISTER], ["register_scheduledtask"], [OWNED, *[FORBIDDEN] * 4]),
        ([Right.WORK], ["work_taskrun"], [FORBIDDEN, [], ABSENT, ABSENT, []]),
        ([Right.READ], ["view_scheduledtask"], [FORBIDDEN] * 5),
        (
            [*Right],
            ["register_scheduledtask", "work_taskrun", "view_scheduledtask"],
            [OWNED, [], ABSENT, ABSENT, []],
        ),
        (
            [],
            ["pause_scheduledtask", "run_scheduledtask", "cancel_taskrun", "add_accesstoken"],
            [FORBIDDEN] * 5,
        ),
    ],
    ids=["register", "work", "read", "every right", "operator"],
)
def test_no_token_or_user_can_touch_a_run_of_settings(
    job: str, rights: list[Right], permissions: list[str], answers: list[Any]
) -> None:
    before = TaskRun.objects.values().get(), ScheduledTask.objects.values().get()
    for caller in (Caller(token("t", *rights)), user(*permissions)):
        assert acts_on(caller, job) == answers
        if Right.READ not in rights:
            for path in (LIST, "/v1/cron/ours", f"/v1/jobs/{job}"):
                assert caller.get(path).code == FORBIDDEN
    assert (TaskRun.objects.values().get(), ScheduledTask.objects.values().get()) == before
    assert not TaskOverride.objects.exists()


def test_a_registering_token_sees_no_declaration_of_settings(job: str) -> None:
    caller = Caller(token("t", Right.REGISTER))
    for answer in (
        caller.post(LIST, {**ENTRY, "name": "ours"}),
        caller.patch("/v1/cron/ours", {"enabled": True}),
        caller.delete("/v1/cron/ours"),
        caller.delete(f"/v1/jobs/{job}"),
    ):
        assert answer.code == OWNED
        text = str(answer.data)
        assert not any(word in text for word in ("s3cret", "0 9 * * *", "reports.tasks"))


def test_a_reading_token_or_user_sees_no_secret_and_changes_nothing(job: str) -> None:
    for caller in (Caller(token("t", Right.READ)), user("view_scheduledtask")):
        for path in (LIST, "/v1/cron/ours", f"/v1/jobs/{job}"):
            answer = caller.get(path)
            assert answer.status == 200
            assert "s3cret" not in str(answer.data)
        assert caller.post(LIST, ENTRY).code == FORBIDDEN
    assert ScheduledTask.objects.count() == 1


def test_an_unauthenticated_caller_cannot_find_out_which_names_exist(job: str) -> None:
    stranger = Caller()
    absent = str(name_of(2**40, system_clock.now()))
    for path, names in (("/v1/cron/", ("ours", "gone")), ("/v1/jobs/", (job, absent))):
        for method in ("GET", "PATCH", "DELETE", "OPTIONS", "PUT", "HEAD"):
            there, gone = (stranger.send(method, path + name, {}) for name in names)
            for answer in (there, gone):
                answer.data.get("error", {}).pop("request_id", None)
            assert (there.status, there.data) == (gone.status, gone.data)


# --- limits ---


def test_too_many_requests_are_refused_until_the_next_minute(
    binding: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DECLARATIVE_CRON = {"HTTP_RATE": 2}
    one, other = Caller(token("one", Right.READ)), Caller(token("other", Right.READ))
    assert [one.get(LIST).status for _ in range(3)] == [200, 200, 429]
    refused = one.get(LIST)
    assert refused.code == (429, "rate_limited")
    assert refused.data["error"]["retryable"] is True
    assert refused.headers["Retry-After"] == "48"
    assert other.get(LIST).status == 200
    monkeypatch.setattr(throttling, "_now", lambda: NOW + 47.4)
    assert one.get(LIST).status == 429
    monkeypatch.setattr(throttling, "_now", lambda: NOW + 47.5)
    assert one.get(LIST).status == 200


def test_guessing_is_slowed_down(binding: None) -> None:
    made = read_token(token("t", Right.READ))
    assert made is not None
    answers = [Caller("x").get(LIST).status for _ in range(61)]
    assert answers == [401] * 60 + [429]
    # Unknown tokens and tokens with a wrong secret.
    for guess in (Token("0" * 12, "B" * 43), Token(made.key, "B" * 43)):
        assert Caller(str(guess)).get(LIST).code == (429, "rate_limited")
    # A valid token is accepted from the same address too, until it is revoked.
    assert Caller(str(made)).get(LIST).status == 200
    assert Caller(token("new", Right.READ)).get(LIST).status == 200
    assert access_tokens.revoke("t", system_clock.now())
    assert Caller(str(made)).get(LIST).status == 429


def test_if_the_cache_fails_tokens_are_still_checked(
    binding: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("no cache")

    for name in ("add", "incr"):
        monkeypatch.setattr(f"django_declarative_cron.http.throttling.cache.{name}", fail)
    good = Caller(token("t", Right.READ))
    assert [good.get(LIST).status, Caller("x").get(LIST).status] == [200, 401]
    assert "Counting requests in the cache failed" in caplog.text


def test_a_cache_that_stores_nothing_limits_nothing(binding: None, settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"HTTP_RATE": 1}
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    caller = Caller(token("t", Right.READ))
    assert [caller.get(LIST).status for _ in range(3)] == [200] * 3
