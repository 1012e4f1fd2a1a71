"""EVENT_SINK: valid and invalid values; messages contain no secrets."""

from __future__ import annotations

import base64
import importlib.util
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import checks
from django.core.exceptions import ImproperlyConfigured

from django_declarative_cron import checks as ours
from django_declarative_cron import conf
from django_declarative_cron.core.channels import signature_headers
from django_declarative_cron.core.event_sink import Sink, backoff

pytestmark = pytest.mark.usefixtures("still_clock")

SECRET = "whsec_" + base64.b64encode(b"k" * 24).decode()
URL = "https://hooks.example.org/cron"


@pytest.fixture
def configure(settings: Any) -> Any:
    def put(sink: Any) -> None:
        settings.SCHEDULED_TASKS = []
        settings.DECLARATIVE_CRON = {"EVENT_SINK": sink}

    return put


def sink_of(configure: Any, **keys: Any) -> Sink:
    configure({"url": URL, "secret": SECRET, **keys})
    found = conf.options().EVENT_SINK
    assert found is not None
    return found


def test_the_defaults(configure: Any) -> None:
    sink = sink_of(configure)
    assert (sink.url, sink.secrets) == (URL, (SECRET,))
    assert (sink.timeout, sink.give_up_after) == (timedelta(seconds=10), timedelta(days=3))
    assert (sink.most, sink.source, sink.headers) == (100_000, "", {})
    assert sink.wants("cron.triggered")
    assert conf.option_problems() == []


def test_none_is_nowhere(configure: Any) -> None:
    configure(None)
    assert conf.options().EVENT_SINK is None
    assert not conf.posts_events()


def test_everything_can_be_said(configure: Any) -> None:
    sink = sink_of(
        configure,
        secret=[SECRET, SECRET],
        events=["cron.*", "job.failed"],
        timeout=timedelta(seconds=3),
        give_up_after=3600,
        most=5,
        source="https://shop.example.org/",
        headers={"Authorization": "Bearer of events"},
    )
    wanted = [kind for kind in ("cron.missed", "job.failed", "job.started") if sink.wants(kind)]
    assert wanted == ["cron.missed", "job.failed"]
    assert (sink.secrets, sink.most) == ((SECRET, SECRET), 5)
    assert (sink.timeout, sink.give_up_after) == (timedelta(seconds=3), timedelta(hours=1))


def test_what_is_secret_is_not_shown(configure: Any) -> None:
    sink = sink_of(configure, headers={"Authorization": "Bearer of events"})
    assert SECRET not in repr(conf.options())
    assert "Bearer" not in repr(sink)


LACKS = "must have a `url`"
BOUNDS = "must be from 0.1 s to 60 s, not "


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("https://example.org", "must be a dict or None, not str"),
        ({}, LACKS),
        ({"secret": SECRET}, LACKS),
        ({"URL": URL}, "has an unknown key `URL`; did you mean `url`?"),
        ({"url": URL, "secrt": 1}, "has an unknown key `secrt`; did you mean `secret`?"),
        ({"url": 5}, "has a `url` that must be a text, not int"),
        ({"url": "example.org"}, "has a `url` that must be a URL such as "),
        ({"url": "ftp://example.org"}, "has a `url` that must be a URL such as "),
        ({"url": "https://"}, "has a `url` that must be a URL such as "),
        ({"url": "https://[::1"}, "has a `url` that must be a URL such as "),
        ({"url": "https://example.org:99999"}, "has a `url` that must be a URL such as "),
        ({"url": "https://example.org/a b"}, "has a `url` that must be a URL such as "),
        ({"url": "https://example.org/\n"}, "has a `url` that must be a URL such as "),
        ({"url": "https://ada:pw@example.org"}, "has a `url` that must not have a user or a "),
        ({"url": URL, "secret": "hunter2"}, "has a `secret` that must begin with whsec_"),
        ({"url": URL, "secret": "whsec_hunter2!"}, "has a `secret` that must be Base64 after "),
        (
            {"url": URL, "secret": "whsec_aHVudGVyMg=="},
            "has a `secret` that must encode at least 24 bytes, not 7",
        ),
        ({"url": URL, "secret": []}, "has a `secret` that must be a text, or a list of texts "),
        ({"url": URL, "secret": [5]}, "has a `secret` that must be a text, not int"),
        ({"url": URL, "events": "cron.*"}, "has a `events` that must be a list of types"),
        ({"url": URL, "events": []}, "has a `events` that must be a list of types"),
        (
            {"url": URL, "events": ["cron.triggerd"]},
            "has a `events` that names no event by 'cron.triggerd'; did you mean `cron.triggered`?",
        ),
        ({"url": URL, "events": [5]}, "has a `events` that names no event by '5'; there are "),
        ({"url": URL, "timeout": 0}, f"has a `timeout` that {BOUNDS}0 s"),
        ({"url": URL, "timeout": 61}, f"has a `timeout` that {BOUNDS}61 s"),
        (
            {"url": URL, "timeout": float("nan")},
            "has a `timeout` that must be a timedelta or a number",
        ),
        ({"url": URL, "timeout": True}, "has a `timeout` that must be a timedelta or a number"),
        ({"url": URL, "give_up_after": "3d"}, "has a `give_up_after` that must be a timedelta or"),
        ({"url": URL, "most": 0}, "has a `most` that must be a whole number from 1 to 2147483647"),
        ({"url": URL, "source": ""}, "has a `source` that must be a URI"),
        ({"url": URL, "source": "größe"}, "has a `source` that must be a URI"),
        ({"url": URL, "headers": []}, "has a `headers` that must be a dict, not list"),
        ({"url": URL, "headers": {"A": "b\r\nC: d"}}, "has a `headers` that must have names and"),
        ({"url": URL, "headers": {"A": 5}}, "has a `headers` that must have names and values of "),
        (
            {"url": URL, "headers": {"Webhook-Id": "5"}},
            "has a `headers` that must not set Webhook-Id",
        ),
    ],
)
def test_what_is_refused(configure: Any, sink: Any, message: str) -> None:
    configure(sink)
    (problem,) = conf.option_problems()
    assert (str(problem.check), problem.place) == (
        "declarative_cron.E022",
        "DECLARATIVE_CRON['EVENT_SINK']",
    )
    assert problem.message.startswith(message)
    assert "hunter" not in problem.message + problem.hint
    with pytest.raises(ImproperlyConfigured):
        conf.options()
    assert not conf.posts_events()


@pytest.mark.parametrize(
    ("keys", "remarks"),
    [
        ({}, []),
        ({"url": "http://localhost:8000/"}, []),
        ({"url": "http://127.0.0.1/"}, []),
        ({"url": "http://receiver:8000/"}, []),
        ({"url": "http://example.org/"}, ["over http"]),
        ({"secret": None}, ["without a signature"]),
        ({"url": "http://example.org/", "secret": None}, ["without a signature", "over http"]),
    ],
)
def test_what_is_unsafe_is_remarked(configure: Any, keys: Any, remarks: list[str]) -> None:
    given = {"url": URL, "secret": SECRET, **keys}
    configure({key: value for key, value in given.items() if value is not None})
    found = checks.run_checks(tags=[ours.TAG])
    assert [message.id for message in found] == ["declarative_cron.W050"] * len(remarks)
    assert all(words in message.msg for words, message in zip(remarks, found, strict=True))


def test_the_library_it_needs_is_asked_for(configure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        ours, "find_spec", lambda name, *rest: None if name == "urllib3" else find(name, *rest)
    )
    configure(None)
    assert checks.run_checks(tags=[ours.TAG]) == []
    configure({"url": URL, "secret": SECRET})
    (message,) = checks.run_checks(tags=[ours.TAG])
    assert message.id == "declarative_cron.E050"
    assert message.hint == 'Install "django-declarative-cron[events]".'


def test_without_a_secret_nothing_is_signed() -> None:

    sent = signature_headers("some-id", b"{}", datetime(2026, 1, 1, tzinfo=UTC), ())
    assert sent == {
        "content-type": "application/cloudevents+json; charset=utf-8",
        "webhook-id": "some-id",
        "webhook-timestamp": "1767225600",
    }


def test_each_pause_is_longer_up_to_the_longest() -> None:
    longest = timedelta(hours=1)
    pauses = [backoff(n, 0.9999, longest).total_seconds() for n in range(1, 16)]
    assert pauses == sorted(pauses)
    assert round(pauses[0]) == 2
    assert round(pauses[-1]) == 3600
    assert backoff(1, 0.0, longest) == timedelta(seconds=1)
    assert backoff(10_000, 0.0, longest) == longest / 2
