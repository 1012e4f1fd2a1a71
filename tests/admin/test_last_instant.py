"""Rows with the last instant there is: no zone east of UTC can show it, and nothing fails."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from django_declarative_cron.core.http_api import Right
from django_declarative_cron.fields import InstantField
from django_declarative_cron.management.commands.cron import Command
from django_declarative_cron.models import AccessToken
from django_declarative_cron.store import access_tokens

from . import pages, rows
from .test_actions import READY

LAST = datetime.max.replace(tzinfo=UTC)
SHOWN = "9999-12-31 23:59:59 UTC"


def said(words: str) -> str:
    out = StringIO()
    call_command(Command(stdout=out, stderr=out), *words.split())
    return out.getvalue()


@pytest.fixture
def last_rows(settings: Any, db: None) -> list[Model]:
    """Return a row of each model, whose every instant is the last."""
    settings.TIME_ZONE = "Pacific/Kiritimati"
    access_tokens.create("t", list(Right), rows.NOW)
    found = [rows.task(), rows.run(), rows.instance(), rows.act(until=LAST)]
    found.append(AccessToken.objects.get())
    for row in found:
        for each in row._meta.fields:
            if isinstance(each, InstantField):
                setattr(row, each.name, LAST)
        row.save()
    rows.run(outcome="failed")
    return found


def test_the_admin_shows_it_in_utc(root: Client, last_rows: list[Model]) -> None:
    for row in last_rows:
        for address in (pages.changelist(row._meta.model_name), pages.page(row)):
            response = root.get(address)
            assert response.status_code == 200
            assert SHOWN in response.content.decode(), address
    plain = [
        reverse(f"admin:{pages.APP}_scheduledtask_{name}") for name in ("timeline", "calendar")
    ]
    acts = [pages.act(key, last_rows[0]) for key in READY]
    for address in (*plain, *acts):
        assert root.get(address).status_code == 200


@pytest.mark.parametrize("words", ["show", "show --format json", "explain", "next"])
def test_commands_show_a_task_in_utc(last_rows: list[Model], words: str) -> None:
    assert SHOWN in said(f"{words} digest")


@pytest.mark.parametrize("words", ["history", "verify", "token list"])
def test_commands_show_other_rows_in_utc(last_rows: list[Model], words: str) -> None:
    assert SHOWN in said(words)
