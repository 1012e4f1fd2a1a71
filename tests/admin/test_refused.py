"""Attempts without permission: refused, logged, without effect (003 Security)."""

from __future__ import annotations

import logging

import pytest

from django_declarative_cron.models import TaskOverride

from . import pages, rows
from .conftest import Login


def test_an_attempt_without_permission_is_logged_and_changes_nothing(
    login: Login, caplog: pytest.LogCaptureFixture
) -> None:
    task = rows.task()
    client = login("view_scheduledtask")
    with caplog.at_level(logging.WARNING, logger="django.request"):
        refused = client.post(pages.act("pause"), pages.confirmed(task))
    assert refused.status_code == 403
    [record] = [each for each in caplog.records if each.name == "django.request"]
    assert "Forbidden" in record.getMessage()
    assert "/scheduledtask/act/pause/" in record.getMessage()
    assert not TaskOverride.objects.exists()
