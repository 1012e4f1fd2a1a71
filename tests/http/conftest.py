"""A caller of the HTTP binding, and a scheduler on a virtual clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.cache import cache
from django.test import Client

from django_declarative_cron.core.http_api import Right
from django_declarative_cron.http import throttling
from django_declarative_cron.models import OutboxEvent, TaskRun
from django_declarative_cron.runtime import clock
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.store import access_tokens
from django_declarative_cron.store.outbox import name_of
from django_declarative_cron.testing import Simulation

from .reports import tasks as reports

NOW = 1_800_000_012.5
"""12.5 seconds after the start of a minute."""
ENTRY = {"name": "daily", "cron": "0 9 * * *", "type": "report.generate", "args": [7]}

FETCH, ACK, NACK, BEAT = (f"/v1/workers/{name}" for name in ("fetch", "ack", "nack", "heartbeat"))
EXTERNAL = {
    "name": "sync",
    "cron": "0 * * * *",
    "type": "partner.sync",
    "args": [7],
    "options": {"queue": "slow", "tags": ["a"], "meta": {"b": 1}, "timeout": 60},
}
STORY = [{"name": "a", "cron": "0 0 1 1 *", "timezone": "UTC", "callback": "builtins.print"}]


class Answer:
    """A response, with the headers and the error envelope checked."""

    def __init__(self, response: Any) -> None:
        self.status = response.status_code
        self.headers = response.headers
        content = response.content
        assert self.headers["Content-Type"] == "application/openjobspec+json"
        assert self.headers["OJS-Version"] == "1.0"
        assert self.headers["X-Request-Id"]
        assert not content.startswith(b"<")
        self.data: dict[str, Any] = json.loads(content) if content else {}
        if self.status >= 400 and "error" in self.data:
            error = self.data["error"]
            assert set(error) == {"code", "message", "retryable", "details", "request_id"}
            assert error["request_id"] == self.headers["X-Request-Id"]
            assert isinstance(error["retryable"], bool)

    @property
    def code(self) -> tuple[int, str]:
        return self.status, self.data["error"]["code"]


class Caller:
    """A caller of the binding.

    Args:
        token: sent with each request, unless it is empty.
        client: a new one by default.
    """

    def __init__(self, token: str = "", client: Client | None = None) -> None:
        self.client = client or Client()
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.send("POST", path, body, **headers)

    def patch(self, path: str, body: Any) -> Answer:
        return self.send("PATCH", path, body)

    def delete(self, path: str) -> Answer:
        return self.send("DELETE", path)

    def send(
        self,
        method: str,
        path: str,
        body: Any = b"",
        content_type: str = "application/openjobspec+json",
        **headers: str,
    ) -> Answer:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {**self.headers, **{name.replace("_", "-"): v for name, v in headers.items()}}
        response = self.client.generic(
            method, f"/ojs{path}", content, content_type=content_type, headers=sent
        )
        return Answer(response)


def token(name: str, *granted: Right, **how: Any) -> str:
    return str(access_tokens.create(name, granted, system_clock.now(), **how))


def user(*codenames: str, strict: bool = False, **fields: Any) -> Caller:
    """Return a caller with the session of a new user that has permissions."""
    name = f"user {'-'.join(codenames)}"
    made = get_user_model().objects.create_user(name, password="pw", **fields)
    made.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client(enforce_csrf_checks=strict)
    client.force_login(made)
    return Caller(client=client)


@pytest.fixture(autouse=True)
def calls() -> Iterator[list[tuple[Any, ...]]]:
    """Return the arguments of the calls of the functions in ``reports``."""
    reports.calls.clear()
    yield reports.calls
    reports.calls.clear()


@pytest.fixture
def simulation(db: None) -> Iterator[Callable[..., Simulation]]:
    """Return a function that makes schedulers on a virtual clock, on 1 January 2024."""
    made: list[Simulation] = []

    def make(time: str = "10:10:30", **how: Any) -> Simulation:
        made.append(Simulation(start=f"2024-01-01T{time}Z", time_zone="UTC", **how))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.fixture
def binding(settings: Any, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Include the binding in the project, with the counts of one minute that does not end."""
    settings.ROOT_URLCONF = "tests.http.urls"
    cache.clear()
    monkeypatch.setattr(throttling, "_now", lambda: NOW)


@pytest.fixture
def caller(binding: None) -> Caller:
    """Return a caller with a token that has all rights."""
    return Caller(token("everything", *Right))


# --- external workers ---


def held(job: dict[str, Any]) -> dict[str, str]:
    return {"job_id": job["id"], "reservation": job["reservation"]}


def beat_of(job: dict[str, Any], **keys: Any) -> dict[str, Any]:
    known = {"active_jobs": [job["id"]], "reservations": [job["reservation"]]}
    return {"worker_id": "w1", **known, **keys}


class Place:
    """A scheduler on a virtual clock, and a worker that asks it over HTTP."""

    def __init__(self, sim: Simulation, caller: Caller) -> None:
        self.sim = sim
        self.caller = caller

    def post(self, **keys: Any) -> None:
        answer = self.caller.post("/v1/cron", {**EXTERNAL, **keys})
        assert answer.status in (200, 201), answer.data

    def fetch(self, **keys: Any) -> list[dict[str, Any]]:
        answer = self.caller.post(FETCH, {"queues": ["slow"], "worker_id": "w1", **keys})
        assert answer.status == 200
        found: list[dict[str, Any]] = answer.data["jobs"]
        return found

    def report(self, path: str, job: dict[str, Any], **keys: Any) -> Answer:
        return self.caller.post(path, {**held(job), **keys})

    def due(self, **keys: Any) -> str:
        """Register a task, wait for its first run, and return the name of its job."""
        self.post(**keys)
        self.to("11:00:01")
        run = TaskRun.objects.filter(task_name="sync").latest("id")
        return str(name_of(run.pk, run.scheduled_for))

    def fetched(self, **keys: Any) -> dict[str, Any]:
        """Register a task, and return the job of its first run."""
        self.due(**keys)
        [job] = self.fetch()
        return job

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in OutboxEvent.objects.values_list("body", flat=True)]

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
