"""``cron token``: made and shown once, listed without secrets, revoked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from django_declarative_cron.core.http_api import Right
from django_declarative_cron.formatting import iso8601
from django_declarative_cron.models import AccessToken
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.store import access_tokens

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]
Say = Callable[..., str]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    def run(*words: str) -> str:
        call_command("cron", "token", *words)
        return capsys.readouterr().out.strip()

    return run


def test_a_token_is_shown_once_and_works(say: Say) -> None:
    made = say("create", "ci", "--right", "read", "--right", "register", "--user", "Ada")
    row = access_tokens.bearer(made, system_clock.now())
    assert row is not None
    assert access_tokens.rights_of(row) == {Right.READ, Right.REGISTER}
    assert (row.name, row.author) == ("ci", "Ada")
    listed = say("list")
    assert made not in listed
    assert "ci" in listed
    assert "read, register" in listed


def test_the_least_right_is_given_where_none_is_named(say: Say) -> None:
    row = access_tokens.bearer(say("create", "ci"), system_clock.now())
    assert row is not None
    assert access_tokens.rights_of(row) == {Right.READ}


def test_a_revoked_token_is_void(say: Say) -> None:
    made = say("create", "ci")
    assert say("revoke", "ci", "--yes") == "Revoked: ci"
    assert access_tokens.bearer(made, system_clock.now()) is None
    [record] = json.loads(say("list", "--format", "json"))
    row = AccessToken.objects.get()
    assert row.revoked_at is not None
    assert record == {
        "name": "ci",
        "key": row.key,
        "rights": ["read"],
        "state": "revoked",
        "created_by": row.author,
        "created_at": iso8601(row.created_at),
        "expires_at": None,
        "last_used_at": None,
        "revoked_at": iso8601(row.revoked_at),
    }
    assert AccessToken.objects.count() == 1


@pytest.mark.parametrize(
    ("said", "is_void"), [("y", True), ("YES ", True), ("n", False), ("", False)]
)
def test_revoking_asks_first(
    say: Say, monkeypatch: pytest.MonkeyPatch, said: str, is_void: bool
) -> None:
    made = say("create", "ci")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda prompt: said)
    told = say("revoke", "ci").splitlines()
    assert told[0] == "Programs that use the token 'ci' are refused from then on."
    assert told[1] == ("Revoked: ci" if is_void else "Nothing was changed.")
    assert (access_tokens.bearer(made, system_clock.now()) is None) is is_void


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["revoke", "nobody", "--yes"], 1),
        (["revoke", "taken"], 2),
        (["create"], 2),
        (["create", "a\x07"], 2),
        (["create", "a" * 256], 2),
        (["create", "a", "--expires", "2001-01-01"], 2),
        (["create", "a", "--expires", "soon"], 2),
        (["create", "taken"], 1),
    ],
)
def test_what_is_wrong_is_said_with_its_code(say: Say, words: list[Any], code: int) -> None:
    say("create", "taken")
    with pytest.raises(CommandError) as refused:
        say(*words)
    assert refused.value.returncode == code
