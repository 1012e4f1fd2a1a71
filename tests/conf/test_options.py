"""DECLARATIVE_CRON: defaults, values, and what is refused; EVENT_SINK without its secrets."""

from __future__ import annotations

import base64
import dataclasses
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


@pytest.fixture
def configure(settings: Any) -> Any:
    def put(**options: Any) -> None:
        settings.DECLARATIVE_CRON = options

    return put


def test_defaults(settings: Any) -> None:
    if hasattr(settings, "DECLARATIVE_CRON"):
        del settings.DECLARATIVE_CRON
    assert dataclasses.asdict(conf.options()) == {
        "WORKERS": 10,
        "LEASE": timedelta(seconds=15),
        "RENEW": timedelta(seconds=5),
        "DEAD_AFTER": None,
        "GRACE": timedelta(seconds=25),
        "WATCHDOG_PROCESS": True,
        "ADMIN_ACTIONS": True,
        "DEPLOYMENT": "default",
        "RELEASE": "",
        "HISTORY_MAX_AGE": timedelta(days=90),
        "HISTORY_MAX_RUNS": 1000,
        "EVENT_SINK": None,
        "HTTP_MAX_BODY": 262144,
        "HTTP_RATE": 600,
        "EXTERNAL_WORKERS": False,
        "VISIBILITY_TIMEOUT": timedelta(minutes=10),
        "METRICS_MAX_TASK_LABELS": 200,
        "METRICS_TAGS": False,
        "MONITOR": None,
        "NOTIFY": (),
        "CALENDARS": {},
    }
    assert conf.option_problems() == []


def test_every_option_is_described_with_its_default() -> None:
    for field in dataclasses.fields(conf.Options):
        assert field.metadata["help"]


def test_options_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        conf.options().WORKERS = 5  # type: ignore[misc]


def test_options_are_read_at_each_call(configure: Any) -> None:
    for number in (3, 4):
        configure(WORKERS=number, HISTORY_MAX_RUNS=2**31 - 1)
        assert number == conf.options().WORKERS


@pytest.mark.parametrize("given", [timedelta(seconds=90), 90, 90.0])
def test_durations_are_timedeltas_or_seconds(configure: Any, given: object) -> None:
    configure(LEASE=given, RENEW=0.5, GRACE=0, HISTORY_MAX_AGE=timedelta(days=1))
    found = dataclasses.asdict(conf.options())
    assert found["LEASE"] == timedelta(seconds=90)
    assert found["RENEW"] == timedelta(milliseconds=500)
    assert found["GRACE"] == timedelta(0)


DURATION = "must be a timedelta or a number of seconds, not "
WHOLE = "must be a whole number from 1 to 2147483647, not "
TO_A_CENTURY = "s to 36500 d, not"
NO_CALENDAR = "must be a function, its dotted path, or the path of a file .ics"
BEYOND = "999999999 d 23 h 59 min 59 s"


@pytest.mark.requirement("003 Resource Limits/1")
@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("WORKERS", 0, f"{WHOLE}0"),
        ("WORKERS", True, f"{WHOLE}True"),
        ("WORKERS", 2.5, f"{WHOLE}2.5"),
        ("WORKERS", "4", f"{WHOLE}str"),
        ("WORKERS", None, f"{WHOLE}NoneType"),
        ("LEASE", "15", f"{DURATION}str"),
        ("LEASE", True, f"{DURATION}True"),
        ("LEASE", float("nan"), f"{DURATION}nan"),
        ("LEASE", float("inf"), f"{DURATION}inf"),
        ("HISTORY_MAX_AGE", 1e300, f"must be from 1 {TO_A_CENTURY} {BEYOND}"),
        ("HISTORY_MAX_AGE", 0, f"must be from 1 {TO_A_CENTURY} 0 s"),
        *(
            (key, timedelta.max, f"must be from {least}{TO_A_CENTURY} {BEYOND}")
            for key, least in (
                *(("LEASE", "1 "), ("RENEW", "100 m"), ("DEAD_AFTER", "1 "), ("GRACE", "0 ")),
                ("VISIBILITY_TIMEOUT", "1 "),
            )
        ),
        ("LEASE", 0.5, f"must be from 1 {TO_A_CENTURY} 500 ms"),
        ("RENEW", 0, f"must be from 100 m{TO_A_CENTURY} 0 s"),
        ("GRACE", timedelta(seconds=-1), f"must be from 0 {TO_A_CENTURY} -1 s"),
        ("DEAD_AFTER", 0.5, f"must be from 1 {TO_A_CENTURY} 500 ms"),
        ("DEAD_AFTER", "60", f"{DURATION}str"),
        ("WATCHDOG_PROCESS", 1, "must be True or False, not 1"),
        ("ADMIN_ACTIONS", "no", "must be True or False, not str"),
        ("HISTORY_MAX_RUNS", 2**31, f"{WHOLE}2147483648"),
        ("HISTORY_MAX_RUNS", -1, f"{WHOLE}-1"),
        ("DEPLOYMENT", 5, "must be a text, not int"),
        ("DEPLOYMENT", "", "must have 1 to 255 characters, found 0"),
        ("DEPLOYMENT", "x" * 256, "must have 1 to 255 characters, found 256"),
        (
            "DEPLOYMENT",
            "a\nb",
            "must not contain control characters, found U+000A at position 1",
        ),
        ("RELEASE", None, "must be a text, not NoneType"),
        ("CALENDARS", ["holidays"], "must be a dict, not list"),
        ("CALENDARS", {"a": 5}, f"['a'] {NO_CALENDAR}, not 5"),
        ("CALENDARS", {"a": "holidays"}, f"['a'] {NO_CALENDAR}, not 'holidays'"),
        ("CALENDARS", {"": len}, "must have 1 to 255 characters, found 0"),
    ],
)
def test_values_that_are_refused(configure: Any, key: str, value: Any, message: str) -> None:
    configure(**{key: value})
    (problem,) = conf.option_problems()
    assert (str(problem.check), problem.place) == (
        "declarative_cron.E022",
        f"DECLARATIVE_CRON['{key}']",
    )
    assert problem.message == message
    with pytest.raises(ImproperlyConfigured) as caught:
        conf.options()
    assert str(caught.value).startswith(f"DECLARATIVE_CRON['{key}'] {message}\nThe default is ")


@pytest.mark.parametrize(
    ("former", "present"),
    [
        ("COMPANION", "WATCHDOG_PROCESS"),
        ("ADMIN_ACTS", "ADMIN_ACTIONS"),
        ("RESERVATION", "VISIBILITY_TIMEOUT"),
        ("METRICS_TASKS", "METRICS_MAX_TASK_LABELS"),
        ("HISTORY_DAYS", "HISTORY_MAX_AGE"),
    ],
)
def test_the_former_name_of_an_option_is_refused_with_the_present_one(
    configure: Any, former: str, present: str
) -> None:
    configure(**{former: True})
    (problem,) = conf.option_problems()
    assert problem.message == f"is not a known option; did you mean `{present}`?"
    assert problem.hint == f"Write `{present}`."


def test_an_unknown_option_is_refused_with_the_nearest(configure: Any) -> None:
    configure(WORKRS=4)
    (problem,) = conf.option_problems()
    assert str(problem.check) == "declarative_cron.E021"
    assert problem.message == "is not a known option; did you mean `WORKERS`?"
    with pytest.raises(ImproperlyConfigured, match="WORKRS"):
        conf.options()


@pytest.mark.parametrize("key", ["workers", "zzz", 5])
def test_options_are_written_in_capitals(settings: Any, key: Any) -> None:
    settings.DECLARATIVE_CRON = {key: 4}
    (problem,) = conf.option_problems()
    assert ("`WORKERS`?" in problem.message) is (key == "workers")
    # All options are listed only where none is near.
    assert ("`HISTORY_MAX_RUNS`" in problem.hint) is (key != "workers")


@pytest.mark.parametrize("given", [None, [], "x", 5])
def test_options_that_are_no_dict(settings: Any, given: object) -> None:
    settings.DECLARATIVE_CRON = given
    (problem,) = conf.option_problems()
    assert str(problem.check) == "declarative_cron.E020"
    assert problem.message == f"must be a dict, not {type(given).__name__}"
    with pytest.raises(ImproperlyConfigured):
        conf.options()


@pytest.mark.parametrize(
    ("lease", "renew", "ids"),
    [
        (15, 5, []),
        (10, 5, []),
        (15, 8, ["declarative_cron.W010"]),
        (15, 15, ["declarative_cron.E023"]),
        (5, 6, ["declarative_cron.E023"]),
        (4, ..., ["declarative_cron.E023"]),
    ],
)
def test_renewing_must_come_before_the_lease_ends(
    configure: Any, lease: Any, renew: Any, ids: list[str]
) -> None:
    configure(LEASE=lease, **({} if renew is ... else {"RENEW": renew}))
    assert [str(problem.check) for problem in conf.option_problems()] == ids
    if ids == ["declarative_cron.E023"]:
        with pytest.raises(ImproperlyConfigured, match="must be less than LEASE"):
            conf.options()
    else:
        assert dataclasses.asdict(conf.options())["LEASE"] == timedelta(seconds=lease)


@pytest.mark.parametrize(
    ("options", "silence"),
    [
        ({"DEAD_AFTER": None}, 15),
        ({"DEAD_AFTER": 15}, 15),
        ({"DEAD_AFTER": 120}, 120),
        ({"LEASE": 60}, 60),
    ],
)
def test_silence_is_death_after_a_lease_unless_said(
    configure: Any, options: dict[str, Any], silence: int
) -> None:
    configure(**options)
    assert conf.option_problems() == []
    assert conf.options().longest_silence == timedelta(seconds=silence)


@pytest.mark.parametrize("options", [{"DEAD_AFTER": 14}, {"LEASE": 60, "DEAD_AFTER": 30}])
def test_nobody_is_taken_for_dead_before_its_lease_ends(
    configure: Any, options: dict[str, Any]
) -> None:
    configure(**options)
    (problem,) = conf.option_problems()
    assert str(problem.check) == "declarative_cron.E023"
    assert problem.place == "DECLARATIVE_CRON['DEAD_AFTER']"
    assert problem.message.startswith("must be at least LEASE: ")


@pytest.mark.parametrize(("grace", "ids"), [(29, []), (30, ["declarative_cron.I003"])])
def test_a_grace_that_containers_do_not_grant_by_themselves_is_noted(
    configure: Any, grace: int, ids: list[str]
) -> None:
    configure(GRACE=grace)
    problems = conf.option_problems()
    assert [str(problem.check) for problem in problems] == ids
    assert timedelta(seconds=grace) == conf.options().GRACE
    assert all(f"more than {grace} s" in problem.hint for problem in problems)


def test_all_mistakes_are_reported_at_once(configure: Any) -> None:
    configure(WORKRS=1, LEASE=None, GRACE=-1, RENEW=20)
    assert [problem.place for problem in conf.option_problems()] == [
        "DECLARATIVE_CRON['WORKRS']",
        "DECLARATIVE_CRON['LEASE']",
        "DECLARATIVE_CRON['GRACE']",
        "DECLARATIVE_CRON['RENEW']",
    ]


def test_a_long_value_is_shortened_in_the_message(configure: Any) -> None:
    configure(WORKERS="x" * 10_000)
    assert len(conf.option_problems()[0].message) < 200


# --- EVENT_SINK ---


SECRET = "whsec_" + base64.b64encode(b"k" * 24).decode()
URL = "https://hooks.example.org/cron"


@pytest.fixture
def sink_is(settings: Any) -> Any:
    def put(sink: Any) -> None:
        settings.SCHEDULED_TASKS = []
        settings.DECLARATIVE_CRON = {"EVENT_SINK": sink}

    return put


def sink_of(sink_is: Any, **keys: Any) -> Sink:
    sink_is({"url": URL, "secret": SECRET, **keys})
    found = conf.options().EVENT_SINK
    assert found is not None
    return found


def test_the_defaults_of_a_sink(sink_is: Any) -> None:
    sink = sink_of(sink_is)
    assert (sink.url, sink.secrets) == (URL, (SECRET,))
    assert (sink.timeout, sink.give_up_after) == (timedelta(seconds=10), timedelta(days=3))
    assert (sink.most, sink.source, sink.headers) == (100_000, "", {})
    assert sink.wants("cron.triggered")
    assert conf.option_problems() == []


def test_none_is_nowhere(sink_is: Any) -> None:
    sink_is(None)
    assert conf.options().EVENT_SINK is None
    assert not conf.posts_events()


def test_everything_can_be_said(sink_is: Any) -> None:
    sink = sink_of(
        sink_is,
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


def test_what_is_secret_is_not_shown(sink_is: Any) -> None:
    sink = sink_of(sink_is, headers={"Authorization": "Bearer of events"})
    assert SECRET not in repr(conf.options())
    assert "Bearer" not in repr(sink)


LACKS = "must have a `url`"
BOUNDS = "must be from 100 ms to 1 min, not "


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
        ({"url": URL, "timeout": 61}, f"has a `timeout` that {BOUNDS}1 min 1 s"),
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
def test_sinks_that_are_refused(sink_is: Any, sink: Any, message: str) -> None:
    sink_is(sink)
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


def test_a_sink_without_address_says_what_to_write(sink_is: Any) -> None:
    sink_is({"secret": SECRET})
    (problem,) = conf.option_problems()
    assert problem.hint.startswith('Write {"url": "https://')


@pytest.mark.usefixtures("still_clock")
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
def test_what_is_unsafe_is_remarked(sink_is: Any, keys: Any, remarks: list[str]) -> None:
    given = {"url": URL, "secret": SECRET, **keys}
    sink_is({key: value for key, value in given.items() if value is not None})
    found = checks.run_checks(tags=[ours.TAG])
    assert [message.id for message in found] == ["declarative_cron.W050"] * len(remarks)
    assert all(words in message.msg for words, message in zip(remarks, found, strict=True))


@pytest.mark.usefixtures("still_clock")
def test_the_library_it_needs_is_asked_for(sink_is: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        ours, "find_spec", lambda name, *rest: None if name == "urllib3" else find(name, *rest)
    )
    sink_is(None)
    assert checks.run_checks(tags=[ours.TAG]) == []
    sink_is({"url": URL, "secret": SECRET})
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
