"""What waits for the receiver of events is said above the list of schedulers."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.models import OutboxEvent

from . import pages, rows
from .conftest import Login
from .rows import NOW

LIST = pages.changelist("schedulerinstance")


@pytest.fixture
def waiting(db: None, settings: Any) -> list[OutboxEvent]:
    """Let three events wait, the oldest for an hour."""
    settings.DECLARATIVE_CRON = {"EVENT_SINK": {"url": "https://example.org"}}
    made = [
        OutboxEvent(
            scheduler=rows.deployment(),
            event_id=uuid.uuid4(),
            type="job.started",
            task_name="t",
            body="{}",
            created_at=NOW - timedelta(hours=n),
        )
        for n in (1, 0, 0)
    ]
    return OutboxEvent.objects.bulk_create(made)


@pytest.fixture
def said(root: Client, text: Callable[[Any], str]) -> Callable[[], str]:
    def words() -> str:
        return text(root.get(LIST))

    return words


def test_what_waits_is_said(waiting: list[OutboxEvent], said: Callable[[], str]) -> None:
    assert "Event outbox 3 events are pending, the oldest for 1 h." in said()
    OutboxEvent.objects.update(attempts=1, error="<b>503</b>")
    assert "1 h. Last error: <b>503</b>" in said()
    OutboxEvent.objects.update(dead_lettered_at=NOW)
    assert "All events are delivered. 3 events are dead-lettered." in said()
    OutboxEvent.objects.all().delete()
    assert "Event outbox All events are delivered." in said()


def test_nothing_is_said_without_a_sink(
    waiting: list[OutboxEvent], said: Callable[[], str], settings: Any
) -> None:
    settings.DECLARATIVE_CRON = {}
    assert "Event outbox" not in said()


def test_nothing_is_asked_for_who_may_not_see_schedulers(
    waiting: list[OutboxEvent], login: Login
) -> None:
    client = login()
    with CaptureQueriesContext(connection) as caught:
        assert client.get(LIST).status_code == 403
    assert not [query for query in caught.captured_queries if "outboxevent" in query["sql"]]
