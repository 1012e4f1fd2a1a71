"""Check-ins by the Sentry SDK, and pings to a local server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
import sentry_sdk
from django.core.management import call_command
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from django_declarative_cron import Scheduler
from django_declarative_cron.monitoring import monitors
from django_declarative_cron.runtime import watchers
from django_declarative_cron.signals import SIGNALS

from ..receiver import Got, Receiver
from ..timeouts import TIMEOUT
from .conftest import Watched

HERE = "tests.monitoring.callbacks"
NEVER_TODAY = "0 0 29 2 *"


def task(name: str = "well", **more: Any) -> dict[str, Any]:
    entry = {"name": name, "cron": NEVER_TODAY, "timezone": "Europe/Berlin"}
    options = {"retry": {"max_attempts": 1}}
    return {**entry, "callback": f"{HERE}.{name}", "options": options, "monitor": True, **more}


class Captured(Transport):
    """Keep the check-ins that the SDK would send."""

    def __init__(self) -> None:
        super().__init__()
        self.checkins: list[dict[str, Any]] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        for item in envelope.items:
            if item.type == "check_in":
                self.checkins.append(json.loads(item.get_bytes()))


@pytest.fixture
def sentry() -> Iterator[Captured]:
    transport = Captured()
    with sentry_sdk.isolation_scope():
        sentry_sdk.init(
            dsn="https://key@sentry.example/1",
            transport=transport,
            # Integrations would patch libraries for the whole session.
            default_integrations=False,
            auto_enabling_integrations=False,
        )
        yield transport
    sentry_sdk.get_client().close(timeout=0.1)
    sentry_sdk.get_global_scope().set_client(None)


def states(got: list[Got]) -> list[str]:
    return [each.path.partition("?")[0] for each in got]


def rid(got: Got) -> UUID:
    return UUID(got.path.partition("rid=")[2])


def test_a_run_is_checked_in_at_its_start_and_its_end(watched: Watched) -> None:
    unwatched = task("unwatched", callback=f"{HERE}.well", monitor=False)
    watched.begin(task(), task("fails"), unwatched, MONITOR=watched.pinged())
    watched.run("well", "unwatched")
    began, ended = watched.taken(2)
    assert states([began, ended]) == ["/hook/s3cret/well/start", "/hook/s3cret/well"]
    assert rid(began) == rid(ended)
    watched.run("fails")
    *_, again, failed = watched.taken(4)
    assert states([again, failed]) == ["/hook/s3cret/fails/start", "/hook/s3cret/fails/fail"]
    assert failed.body == b"ValueError: it went wrong"
    assert rid(again) == rid(failed) != rid(began)


def test_sentry_gets_the_definition_with_each_check_in(watched: Watched, sentry: Captured) -> None:
    beat = task("beat", callback=f"{HERE}.well", cron="0 0 L * *", monitor={"failures": 2})
    watched.begin(task(), beat, MONITOR={"sentry": True, "margin": 90})
    for number, name in enumerate(("well", "beat"), 1):
        watched.run(name)
        watched.heard.wait_for("TaskRunCompleted", number)
    watched.scheduler.stop()
    first, second, third, fourth = sentry.checkins
    assert [each["status"] for each in sentry.checkins] == ["in_progress", "ok"] * 2
    assert first["check_in_id"] == second["check_in_id"] != third["check_in_id"]
    assert first["monitor_slug"] == "well"
    assert first["monitor_config"] == {
        "schedule": {"type": "crontab", "value": NEVER_TODAY},
        "timezone": "Europe/Berlin",
        "checkin_margin": 2,
        "max_runtime": 60,
    }
    assert second["duration"] >= 0
    # The longest month has 31 days and one hour more.
    config = fourth["monitor_config"]
    assert config["schedule"] == {"type": "interval", "value": 745, "unit": "hour"}
    assert config["failure_issue_threshold"] == 2


def test_the_checks_of_an_api_are_brought_in_step(watched: Watched) -> None:
    own = task("own", callback=f"{HERE}.well", monitor={"ping": "https://hc.example/x"})
    api = {"api": f"{watched.receiver.url}/api/v3/", "api_key": "k3y"}
    watched.begin(task(), own, MONITOR=watched.pinged(**api))
    (got,) = watched.taken(1)
    assert got.path == "/hook/s3cret/api/v3/checks/"
    assert got.headers["x-api-key"] == "k3y"
    names, schedule = {"name": "well", "slug": "well"}, {"schedule": NEVER_TODAY}
    known = {**names, **schedule, "tz": "Europe/Berlin", "grace": 3900, "unique": ["slug"]}
    assert json.loads(got.body) == known


def test_a_failing_monitor_is_reported_without_its_address(watched: Watched) -> None:
    watched.receiver.behave = lambda got: 503
    watched.begin(task(), MONITOR=watched.pinged())
    watched.run("well")
    watched.heard.wait_for("TaskRunCompleted")
    failed = watched.heard.wait_for("CheckInFailed")
    known = (failed[0].monitor, failed[0].error, failed[0].failures)
    assert known == ("ping", "it answered 503", 1)
    # Each ping is tried three times.
    watched.receiver.wait(lambda it: len(it.got) >= 4)


def test_a_monitor_that_answers_slowly_holds_up_its_own_pings_only(watched: Watched) -> None:
    answers = threading.Event()

    def behave(got: Got) -> int:
        assert "/well" in got.path or answers.wait(TIMEOUT)
        return 204

    watched.receiver.behave = behave
    slow = task("slow", callback=f"{HERE}.well")
    watched.begin(task(), slow, MONITOR=watched.pinged(timeout=TIMEOUT / 2))
    watched.run("slow")
    watched.receiver.wait(lambda it: len(it.got) == 1)
    watched.run("well")
    assert states(watched.taken(2)) == ["/hook/s3cret/well/start", "/hook/s3cret/well"]
    assert states(watched.receiver.got).count("/hook/s3cret/slow") == 0
    answers.set()
    assert states(watched.taken(4)[2:]) == ["/hook/s3cret/slow/start", "/hook/s3cret/slow"]


def test_without_monitored_tasks_no_signal_is_connected(settings: Any) -> None:
    before = {name: len(signal.receivers) for name, signal in SIGNALS.items()}
    watcher = monitors.Monitors()
    watcher.begin([], lambda: None)
    assert {name: len(signal.receivers) for name, signal in SIGNALS.items()} == before


def test_a_manual_run_in_the_same_process_does_not_stop_check_ins(watched: Watched) -> None:
    watched.begin(task(), task("fails"), MONITOR=watched.pinged())
    watchers.begin(None)
    watchers.end()
    watched.run("well")
    watched.taken(2)


@pytest.mark.django_db(transaction=True)
def test_a_run_in_the_foreground_checks_in(receiver: Receiver, settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"MONITOR": {"ping": f"{receiver.url}/{{slug}}"}}
    settings.SCHEDULED_TASKS = [task()]
    made = Scheduler(background=False)
    made.initialize(settings.SCHEDULED_TASKS)
    made.stop()
    call_command("cron", "run", "well", verbosity=0)
    assert states(receiver.taken) == ["/hook/s3cret/well/start", "/hook/s3cret/well"]
