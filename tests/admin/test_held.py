"""Acts on rows that somebody else holds: a clear word, and the form as it was."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client

from django_declarative_cron.models import TaskOverride

from ..store.conftest import Stranger, impatient, stranger
from . import pages, rows
from .rows import NOW
from .test_actions import KEYS, READY, did

__all__ = ["impatient", "stranger"]

pytestmark = [
    pytest.mark.usefixtures("impatient"),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the file, not rows"),
]


@pytest.mark.parametrize("key", KEYS)
def test_an_act_on_a_row_that_is_held_says_so_and_may_be_tried_again(
    root: Client, text: Callable[[Any], str], stranger: Stranger, key: str
) -> None:
    task = rows.task("held", **READY[key])
    other = rows.task("other", **READY[key])
    stranger.hold("scheduledtask", name="held")
    said = {**pages.confirmed(task, other), "note": "why"}
    response = root.post(pages.act(key), said)
    assert response.status_code == 200
    shown = text(response)
    assert "Locked by another transaction: held. Nothing was changed. Try again." in shown
    assert "why</textarea>" in response.content.decode()
    assert not did(key, task) and not did(key, other)
    assert not TaskOverride.objects.exists() and not LogEntry.objects.exists()
    stranger.let_go()
    assert root.post(pages.act(key), said).status_code == 302
    assert did(key, task) and did(key, other)


def test_a_deployment_that_is_held_is_no_error_either(
    root: Client, text: Callable[[Any], str], stranger: Stranger
) -> None:
    task = rows.task("t", pending_retry_until=NOW + timedelta(minutes=5))
    stranger.hold("schedulerstate", deployment="default")
    shown = text(root.post(pages.act("clear_retry"), pages.confirmed(task)))
    assert "Locked by another transaction. Nothing was changed. Try again." in shown
    stranger.let_go()
    assert not did("clear_retry", task)
