"""What waits for its receiver is seen: by ``cron health``."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.models import OutboxEvent
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.store.outbox import undelivered
from django_declarative_cron.testing import Simulation

from ..receiver import Post
from . import conftest as commands

cron = commands.cron

NOWHERE = "http://127.0.0.1:9/"
PATIENT = ("--max-age", "600")


@pytest.fixture
def sim(db: None, post_to: Post) -> Simulation:
    """One run's three events wait; the clock is a minute past them."""
    post_to(NOWHERE)
    made = Simulation("2024-01-01T10:00:00Z")
    made.initialize([("t", "0 * * * *", made.job(), timedelta(minutes=5))])
    made.advance_to("2024-01-01T10:01:00Z")
    return made


def refuse(error: str = "503 Service Unavailable") -> None:
    OutboxEvent.objects.filter(type="cron.triggered").update(attempts=2, error=error)


def test_events_on_their_way_are_counted_and_not_made_a_fuss_of(cron: Any, sim: Simulation) -> None:
    answer = cron("health", *PATIENT, "--format", "json", clock=sim.clock)
    assert json.loads(answer.out)["events"] == {
        "waiting": 3,
        "refused": 0,
        "dead_lettered": 0,
        "oldest": "2024-01-01T10:00:00Z",
        "age": 60.0,
        "error": "",
    }
    assert "event" not in cron("health", *PATIENT, clock=sim.clock).out


def test_what_is_held_up_is_said_with_its_age_and_its_reason(cron: Any, sim: Simulation) -> None:
    refuse()
    OutboxEvent.objects.filter(type="job.started").update(dead_lettered_at=sim.now)
    answer = cron("health", *PATIENT, clock=sim.clock)
    assert answer.code == 0
    said = " ".join(answer.out.split())
    assert said.endswith(
        "2 events undelivered for up to 1 min (503 Service Unavailable). 1 event dead-lettered."
    )


def test_the_events_are_listed(cron: Any, sim: Simulation) -> None:
    refuse()
    answer = cron("outbox", "-n", "2")
    said = " ".join(answer.out.split())
    assert "cron.triggered t waits, refused 2 times: 503 Service Unavailable" in said
    assert said.endswith("job.started t waits")
    assert answer.err == "1 more event.\n"
    assert "job.completed" not in said


def test_dead_lettered_events_are_requeued(cron: Any, sim: Simulation) -> None:
    refuse()
    OutboxEvent.objects.filter(attempts=2).update(dead_lettered_at=sim.now)
    answer = json.loads(cron("outbox", "--format", "json").out)
    assert (answer["total"], answer["requeued"]) == (3, 0)
    first = answer["events"][0]
    assert (first["type"], first["attempts"]) == ("cron.triggered", 2)
    assert first["dead_lettered_at"] == "2024-01-01T10:01:00Z"
    assert cron("outbox", "--requeue").out.splitlines()[0] == "1 event requeued."
    assert not OutboxEvent.objects.exclude(dead_lettered_at=None).exists()
    OutboxEvent.objects.all().delete()
    assert cron("outbox").out.strip() == "No event waits."


def test_without_a_sink_nothing_is_asked(cron: Any, sim: Simulation, settings: Any) -> None:
    settings.DECLARATIVE_CRON = {}
    with CaptureQueriesContext(connection) as caught:
        answer = cron("health", *PATIENT, "--format", "json", clock=sim.clock)
    assert json.loads(answer.out)["events"] is None
    assert not [query for query in caught.captured_queries if "outboxevent" in query["sql"]]


def test_before_the_first_scheduler_nothing_waits(db: None, post_to: Post) -> None:
    post_to(NOWHERE)
    assert undelivered("default", "default", system_clock.database_time()) is None
