"""Every curl command of the page on HTTP is asked, in their order, and answered well."""

from __future__ import annotations

import argparse
import shlex
from string import Template
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from django_declarative_cron import handlers
from django_declarative_cron.core.http_api import PERMISSIONS, Right
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime import clock
from django_declarative_cron.store import access_tokens
from django_declarative_cron.store.outbox import name_of
from django_declarative_cron.testing import Simulation

from ..http.reports import tasks as reports
from .pages import DOCS, code

PAGE = DOCS["http.md"]
COMMANDS = [
    block.text.removeprefix("$ ")
    for block in PAGE.blocks
    if block.language == "console" and block.text.startswith("$ curl")
]


def asked(command: str, client: Client, **words: str) -> Any:
    """Send what curl would."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-X", dest="method", default="GET")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="data", default="")
    plain = command.replace("\\\n", " ")
    found = parser.parse_args(shlex.split(Template(plain).safe_substitute(words))[1:])
    headers = dict(header.split(": ", 1) for header in found.headers)
    kind = headers.pop("Content-Type", "")
    url = urlsplit(found.url)
    return client.generic(
        found.method,
        f"{url.path}?{url.query}",
        found.data,
        content_type=kind,
        headers=headers,
    )


def test_every_command_is_answered_well(
    db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(handlers._by_type, "report.daily", reports.generate)
    settings.ROOT_URLCONF = "tests.http.urls"
    settings.DECLARATIVE_CRON = {"EXTERNAL_WORKERS": True}
    sim = Simulation(start="2024-01-01T10:10:30Z", time_zone="UTC")
    monkeypatch.setattr(clock.SystemClock, "now", lambda self: sim.now)
    monkeypatch.setattr(clock.SystemClock, "database_time", lambda self: sim.clock.database_time())
    sim.initialize([])
    client = Client()
    token = str(access_tokens.create("ci", list(Right), sim.now))
    job, reservation, answered = "", "", []
    for command in COMMANDS:
        if "/workers/fetch" in command:
            entry = {"name": "sync", "cron": "0 * * * *", "type": "partner.sync"}
            entry |= {"options": {"queue": "slow"}}
            headers = {"Authorization": f"Bearer {token}"}
            client.post("/ojs/v1/cron", entry, content_type="application/json", headers=headers)
            sim.advance_to("2024-01-01T11:00:01Z")
        if "-X DELETE" in command and "$JOB" in command:
            run = TaskRun.objects.get(task_name="sync")
            assert run.outcome == "succeeded"
            sim.advance_to("2024-01-01T12:00:01Z")
            last = TaskRun.objects.get(task_name="sync", outcome="waiting")
            job = str(name_of(last.pk, last.scheduled_for))
        response = asked(command, client, TOKEN=token, JOB=job, RESERVATION=reservation)
        answered.append((response.status_code, command.split("\n")[0]))
        if "/workers/fetch" in command:
            [fetched] = response.json()["jobs"]
            job, reservation = fetched["id"], fetched["reservation"]
    assert [status for status, _ in answered] == [201] + [200] * (len(COMMANDS) - 1), answered
    sim.crash()


def test_the_rights_and_permissions_are_those_of_the_code() -> None:
    rows = PAGE.table("right", "allows a token to", "permission of a user")
    said = {code(row["right"]): code(row["permission of a user"]) for row in rows}
    assert said == {
        str(right): permission.partition(".")[2] for right, permission in PERMISSIONS.items()
    }


def test_there_are_commands_for_every_endpoint() -> None:
    paths = " ".join(COMMANDS)
    for path in ("/manifest", "/v1/health", "/openapi.json", "/v1/cron", "/v1/jobs/"):
        assert path in paths
    for act in ("fetch", "ack", "heartbeat"):
        assert f"/v1/workers/{act}" in paths
