"""Each response is JSON with the headers of the protocol, and never a redirect."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client, RequestFactory
from django.urls import resolve

from django_declarative_cron.http import cron
from django_declarative_cron.http.parsing import read_object
from django_declarative_cron.http.responses import RefusedError
from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.runtime.scheduler import Scheduler
from django_declarative_cron.store import database

from .conftest import ENTRY, Caller

LIST = "/v1/cron"
ONE = "/v1/cron/daily"


@pytest.mark.parametrize("path", ["/manifest", "/v1/cron", "/v1/cron/daily"])
def test_a_slash_at_the_end_changes_nothing(caller: Caller, path: str, settings: Any) -> None:
    caller.post(LIST, ENTRY)
    for append in (True, False):
        settings.APPEND_SLASH = append
        with_slash, without = caller.get(f"{path}/"), caller.get(path)
        assert (with_slash.status, without.status) == (200, 200)
        assert with_slash.data == without.data


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v2/cron", "/v1/jobs", "/admin/", "/v1/cronx"])
def test_a_path_of_no_endpoint_is_not_found(caller: Caller, path: str, settings: Any) -> None:
    for debug in (True, False):
        settings.DEBUG = debug
        assert caller.get(path or "/").code == (404, "not_found")


@pytest.mark.parametrize(
    "path", ["/nowhere", "/v1/cron/daily%0A", "/v1/cron/da%0Aly", "/v1/jobs/a%0A"]
)
def test_a_path_with_anything_in_it_is_answered_in_the_protocol(caller: Caller, path: str) -> None:
    caller.post(LIST, ENTRY)
    strict = Caller(client=Client(enforce_csrf_checks=True))
    strict.headers = caller.headers
    for method in ("POST", "PATCH", "DELETE"):
        assert strict.send(method, path, {"enabled": False}).status in (404, 405)
    assert ScheduledTask.objects.get().enabled


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (LIST, "GET, HEAD, OPTIONS, POST"),
        (ONE, "DELETE, GET, HEAD, OPTIONS, PATCH"),
        ("/manifest", "GET, HEAD, OPTIONS"),
    ],
)
def test_another_method_is_refused_with_those_that_are_allowed(
    caller: Caller, path: str, allowed: str
) -> None:
    for method in ("PUT", "TRACE", "BREW"):
        answer = caller.send(method, path, {})
        assert answer.code == (405, "method_not_allowed")
        assert answer.headers["Allow"] == allowed
    options = caller.send("OPTIONS", path)
    assert (options.status, options.headers["Allow"]) == (200, allowed)


def test_head_is_get_without_its_body(caller: Caller) -> None:
    caller.post(LIST, ENTRY)
    get, head = caller.get(ONE), caller.send("HEAD", ONE)
    assert (head.status, head.data) == (200, {})
    assert head.headers["Content-Length"] == get.headers["Content-Length"]


@pytest.mark.parametrize("given", ["abc-1", "req_019414d4"])
def test_a_request_keeps_the_name_its_caller_gave_it(caller: Caller, given: str) -> None:
    assert caller.get(LIST, X_Request_Id=given).headers["X-Request-Id"] == given
    refused = caller.get("/nowhere", X_Request_Id=given)
    assert refused.data["error"]["request_id"] == given
    for none in ("a b", "x" * 200, "<script>", ""):
        assert caller.get(LIST, X_Request_Id=none).headers["X-Request-Id"].startswith("req_")


def test_another_version_is_refused(caller: Caller) -> None:
    assert caller.get(LIST, OJS_Version="1.0.0-rc.1").status == 200
    assert caller.get(LIST, OJS_Version="2.0").code == (422, "unsupported")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        *((kind, 415) for kind in ("text/plain", "multipart/form-data; boundary=x", "")),
        *(("text/html", 415), ("application/json", 201), ("application/json; charset=utf-8", 201)),
    ],
)
def test_json_is_taken_and_nothing_else(caller: Caller, kind: str, expected: int) -> None:
    answer = caller.send("POST", LIST, json.dumps(ENTRY).encode(), content_type=kind)
    assert answer.status == expected
    if expected == 415:
        assert answer.code == (415, "unsupported_media_type")


DEEP = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    "body",
    [
        *(b" ", b"{", b"[]", b"7", b"null", b'"text"', b"name=a", b"\xef\xbb\xbf{}", DEEP),
        *(b"\xff\xfe", b'{"name": "\xff"}', b'{"name": "a", "name": "b"}'),
        *(b'{"args": [NaN]}', b'{"args": [Infinity]}', b'{"args": [1e999]}'),
        b'{"args": [' + b"9" * 5000 + b"]}",
        *(b'{"options": {"a": 1, "a": 2}}', b'{"args": ["\\u0000"]}', b'{"args": ["\\ud800"]}'),
        b'{"\\u0000": 1}',
        b'{"args": ' + b"[" * 70 + b"]" * 70 + b"}",
    ],
    ids=lambda body: repr(body[:24]),
)
def test_a_body_that_is_not_one_strict_object_is_refused(caller: Caller, body: bytes) -> None:
    answer = caller.send("POST", LIST, body)
    assert answer.code == (400, "invalid_request")
    # The body is refused before its content is validated.
    assert answer.data["error"]["message"].startswith("The body ")
    assert not ScheduledTask.objects.exists()


def test_a_body_that_is_too_large_is_refused(caller: Caller, settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"HTTP_MAX_BODY": 100}
    answer = caller.post(LIST, {**ENTRY, "description": "x" * 100})
    assert answer.code == (413, "payload_too_large")
    assert answer.data["error"]["details"] == {"max": 100}


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"CONTENT_LENGTH": "ten"}, (400, "invalid_request")),
        # Chunked bodies are not read under WSGI.
        ({"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}, (411, "invalid_request")),
    ],
)
def test_a_body_needs_a_length(
    rf: RequestFactory, headers: dict[str, str], code: tuple[int, str]
) -> None:
    request = rf.generic("POST", LIST, "{}", content_type="application/json")
    request.META |= headers
    with pytest.raises(RefusedError) as caught:
        read_object(request)
    assert (caught.value.status, caught.value.code) == code


def test_a_database_error_is_503(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(cron.posted_tasks, "read", refuse)
    answer = caller.get(ONE)
    assert answer.code == (503, "backend_error")
    assert answer.data["error"]["retryable"] is True
    assert "safe to repeat" in answer.data["error"]["message"]
    assert answer.headers["Retry-After"] == "1"
    assert "gone" not in str(answer.data)
    monkeypatch.setattr(database, "_are_there", lambda using: False)
    answer = caller.get(ONE)
    assert answer.code == (503, "backend_error")
    assert "run `python manage.py migrate` first" in answer.data["error"]["message"]


def test_an_unexpected_error_is_500_without_its_text(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(cron.posted_tasks, "read", fail)
    caller.client.raise_request_exception = False
    answer = caller.get(ONE)
    assert answer.code == (500, "internal_error")
    assert "secret" not in str(answer.data)


def test_a_project_with_a_transaction_for_each_request_is_served(
    binding: None,
) -> None:
    view = resolve("/ojs/v1/cron").func
    assert view._non_atomic_requests == {"default"}
    assert view.csrf_exempt is True


def test_the_manifest_lists_the_capabilities(caller: Caller) -> None:
    found = caller.get("/manifest").data
    assert found["specversion"] == "1.0"
    assert found["implementation"]["name"] == "django-declarative-cron"
    assert found["conformance_level"] == 2
    assert "report.generate" in found["types"]
    policies = ["coalesce", "skip", "allow", "cancel_previous", "enqueue"]
    assert found["capabilities"]["overlap_policies"] == policies


def test_health_is_that_of_the_scheduler(caller: Caller) -> None:
    missing = caller.get("/v1/health")
    assert (missing.status, missing.data["status"]) == (503, "degraded")
    scheduler = Scheduler(background=False)
    scheduler.initialize([])
    found = caller.get("/v1/health")
    assert (found.status, found.data["status"], found.data["schedulers"]) == (200, "ok", 1)
    assert found.data["backend"]["status"] == "connected"
    scheduler.stop()
    assert caller.get("/v1/health").status == 503
