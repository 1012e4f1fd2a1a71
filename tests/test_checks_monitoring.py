"""Checks of the options MONITOR and NOTIFY."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import checks

from django_declarative_cron import checks as ours
from django_declarative_cron import conf
from django_declarative_cron.core.http_api import entry_of
from django_declarative_cron.exceptions import InvalidRegistrationError

pytestmark = pytest.mark.usefixtures("still_clock")

ENTRY = {"name": "a", "cron": "0 4 * * *", "timezone": "UTC", "callback": "os.getcwd"}


def found(settings: Any, options: Any, *entries: Any) -> list[tuple[str, str]]:
    settings.DECLARATIVE_CRON = options
    settings.SCHEDULED_TASKS = list(entries)
    messages = checks.run_checks(tags=[ours.TAG])
    return [(str(each.id).rpartition(".")[2], str(each.msg)) for each in messages]


def test_a_task_that_asks_for_a_monitor_which_nobody_names_is_warned_of(settings: Any) -> None:
    assert found(settings, {}, {**ENTRY, "monitor": True}) == [
        ("W052", "has `monitor`, and nothing says where its check-ins go")
    ]
    for options, own in (
        ({}, "https://hc.example/a"),
        ({}, False),
        ({"MONITOR": {"sentry": True}}, True),
        ({"MONITOR": {"ping": "https://hc.example/{slug}"}}, {"failures": 2}),
    ):
        assert found(settings, options, {**ENTRY, "monitor": own}) == [], own


def test_what_sends_has_to_be_installed(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "find_spec", lambda name: None)
    options = {
        "MONITOR": {"sentry": True, "ping": "https://hc.example/{slug}"},
        "NOTIFY": [{"kind": "slack", "url": "https://hooks.example.org/a"}],
    }
    assert found(settings, options) == [
        ("E051", "needs sentry_sdk, which is not installed"),
        ("E051", "needs urllib3, which is not installed"),
        ("E051", "needs urllib3, which is not installed"),
    ]
    assert found(settings, {"NOTIFY": [{"kind": "mail", "to": ["a@b"]}]}) == []


def test_a_webhook_without_a_signature_is_warned_of(settings: Any) -> None:
    options = {"NOTIFY": [{"kind": "webhook", "url": "https://hooks.example.org/s3cret"}]}
    ((check, words),) = found(settings, options)
    assert check == "W051"
    assert "s3cret" not in words


def test_an_address_that_is_refused_is_not_shown() -> None:
    with pytest.raises(InvalidRegistrationError) as refused:
        conf.declarations([{**ENTRY, "monitor": "hc.example/s3cret"}])
    assert "s3cret" not in "".join([str(refused.value), repr(refused.value.details)])
    with pytest.raises(InvalidRegistrationError, match="unknown key"):
        conf.declarations([{**ENTRY, "monitor": {"slugg": "a"}}])


def test_no_row_has_an_address() -> None:
    plain, watched = conf.declarations(
        [ENTRY, {**ENTRY, "name": "b", "monitor": "https://hc.example/a"}]
    )
    assert "hc.example" not in repr(watched.as_data())
    assert plain.as_data().keys() == watched.as_data().keys()


def test_nobody_outside_may_name_an_address() -> None:
    given = {"name": "a", "cron": "0 4 * * *", "type": "a.b", "monitor": "https://x.example/"}
    _, flaws = entry_of(given)
    assert [(flaw.field, flaw.reason) for flaw in flaws] == [
        ("monitor", "cannot be said over HTTP: it is for SCHEDULED_TASKS")
    ]
