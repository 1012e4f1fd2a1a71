"""Access tokens in the admin: made by those who may, shown once, revoked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from django_declarative_cron.core.http_api import Right
from django_declarative_cron.models import AccessToken
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.store import access_tokens

ADD = "admin:django_declarative_cron_accesstoken_add"
LIST = "admin:django_declarative_cron_accesstoken_changelist"
FORM = {"name": "ci", "rights": ["read", "work"], "expires_at": ""}


def test_a_token_is_shown_once_and_works(root: Client) -> None:
    page = root.post(reverse(ADD), FORM)
    (made,) = re.findall(r"ddc_[0-9a-f]{12}_[\w-]{43}", page.content.decode())
    assert "no-store" in page["Cache-Control"]
    row = access_tokens.bearer(made, system_clock.now())
    assert row is not None
    assert (row.name, access_tokens.rights_of(row)) == ("ci", {Right.READ, Right.WORK})
    assert row.author == "root"
    assert made[-43:] not in root.get(reverse(LIST)).content.decode()
    assert LogEntry.objects.get().object_repr == "ci"


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"name": "a\x00"}, {"rights": ["fly"]}, {"expires_at": "2001-01-01"}]
)
def test_a_form_with_a_mistake_makes_nothing(root: Client, wrong: dict[str, Any]) -> None:
    page = root.post(reverse(ADD), FORM | wrong)
    assert page.status_code == 200
    assert "errornote" in page.content.decode()
    assert not AccessToken.objects.exists()


def test_a_name_is_given_once(root: Client) -> None:
    root.post(reverse(ADD), FORM)
    assert "errornote" in root.post(reverse(ADD), FORM).content.decode()
    assert AccessToken.objects.count() == 1


def test_revoking_asks_first(root: Client) -> None:
    access_tokens.create("ci", [Right.READ], system_clock.now())
    access_tokens.create("cd", [Right.READ], system_clock.now())
    row = AccessToken.objects.get(name="ci")
    chosen = {"action": "revoke", "_selected_action": [row.pk]}
    page = root.post(reverse(LIST), chosen).content.decode()
    assert "Revoke these tokens?" in page
    assert "<li>ci</li>" in page
    assert "<li>cd</li>" not in page
    assert not AccessToken.objects.exclude(revoked_at=None).exists()
    sent = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]+)"', page))
    assert sent.items() >= {"action": "revoke", "_selected_action": str(row.pk)}.items()
    root.post(reverse(LIST), sent)
    assert list(AccessToken.objects.exclude(revoked_at=None)) == [row]
    assert LogEntry.objects.get().object_repr == "ci"


def test_a_person_grants_only_rights_that_they_hold(login: Callable[..., Client]) -> None:
    assert 'name="rights"' not in login("add_accesstoken").get(reverse(ADD)).content.decode()
    reader = login("add_accesstoken", "view_scheduledtask")
    page = reader.get(reverse(ADD)).content.decode()
    assert re.findall(r'name="rights" value="(\w+)"', page) == ["read"]
    assert "You can grant only the rights that you have." in page
    for asked in (["read", "work"], ["register"]):
        refused = reader.post(reverse(ADD), FORM | {"rights": asked}).content.decode()
        assert "errornote" in refused
    assert not AccessToken.objects.exists()
    reader.post(reverse(ADD), FORM | {"rights": ["read"]})
    assert access_tokens.rights_of(AccessToken.objects.get()) == {Right.READ}
