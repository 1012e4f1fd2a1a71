"""Attempts without permission: refused, logged, without effect (003 Security)."""

from __future__ import annotations

import logging

import pytest
from django.test import Client

from django_declarative_cron.models import TaskOverride

from . import pages, rows
from .conftest import Login


@pytest.mark.requirement("003 Error Handling/2")
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


MODELS = ("scheduledtask", "taskrun", "schedulerinstance")
NO_KEYS = ["x", "", "\x00", str(10**30), f"-{10**30}", "9" * 5000]


@pytest.mark.parametrize("key", NO_KEYS, ids=lambda key: repr(key[:12]))
@pytest.mark.parametrize("model", MODELS)
def test_an_action_on_what_can_be_no_row_says_so(root: Client, model: str, key: str) -> None:
    address = f"/admin/django_declarative_cron/{model}/"
    posted = {"action": "pause", "_selected_action": [key, str(rows.task().pk)]}
    answer = root.post(address, posted, follow=True)
    assert answer.redirect_chain == [(address, 302)]
    assert "contains an invalid key" in answer.content.decode()
    assert not TaskOverride.objects.exists()


@pytest.mark.parametrize(
    "page", ["?id__in={},1", "?id={}", "{}/change/", "{}/history/", "?p={}", "act/pause/?task={}"]
)
@pytest.mark.parametrize("key", NO_KEYS[3:], ids=lambda key: key[:12])
def test_an_address_of_what_can_be_no_row_is_answered(root: Client, page: str, key: str) -> None:
    rows.task()
    address = f"/admin/django_declarative_cron/scheduledtask/{page.format(key)}"
    assert root.get(address, follow=True).status_code == 200
