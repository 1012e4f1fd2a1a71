"""Notifications by events and by polling, through each kind of channel."""

from __future__ import annotations

import json
import threading
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import django
import pytest
from django.core import mail

from django_declarative_cron import Scheduler
from django_declarative_cron.core import events
from django_declarative_cron.core import notifications as messages
from django_declarative_cron.core.channels import Channel
from django_declarative_cron.core.notifications import Notice, Observer
from django_declarative_cron.models import ScheduledTask, SchedulerInstance, SchedulerState
from django_declarative_cron.monitoring import channels, notifications
from django_declarative_cron.monitoring.delivery import DeliveryError
from django_declarative_cron.monitoring.notifications import Notifications
from django_declarative_cron.runtime import watchers
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.store.status import attendance

from ..receiver import SECRET, Receiver
from ..runtime.conftest import TIMEOUT
from . import callbacks
from .conftest import Watched
from .test_monitors import task

MAIL = {"kind": "mail", "to": ["ops@example.org"]}
LOCMEM = "django.core.mail.backends.locmem.EmailBackend"


@pytest.fixture(autouse=True)
def _well_again() -> Any:
    yield
    callbacks.BROKEN.clear()


def test_a_failure_and_the_recovery_are_notified(watched: Watched) -> None:
    channel = {"kind": "webhook", "url": watched.receiver.url, "secret": SECRET, "pause": 1}
    callbacks.BROKEN.add("sometimes")
    watched.begin(task("sometimes", monitor=False), NOTIFY=[channel])
    watched.run("sometimes")
    watched.taken(1)
    callbacks.BROKEN.clear()
    watched.heard.wait_for("TaskRunFailed")
    watched.run("sometimes")
    taken = watched.taken(2)
    first, second = (json.loads(got.body) for got in taken)
    assert first["subject"] == "[cron default] Failed: sometimes"
    assert first["notices"][0]["words"] == "ValueError: it went wrong"
    assert [each["occasion"] for each in second["notices"]] == ["recovery"]
    assert taken[0].headers["webhook-signature"].startswith("v1,")


def test_slack_gets_a_text_that_says_it(watched: Watched) -> None:
    channel = {"kind": "slack", "url": watched.receiver.url}
    watched.begin(task("fails", monitor=False), NOTIFY=[channel])
    watched.run("fails")
    text = json.loads(watched.taken(1)[0].body)["text"]
    assert text.startswith(
        "*[cron default] Failed: fails*\nFailed. fails: ValueError: it went wrong"
    )


def test_mail_is_sent_by_django(watched: Watched) -> None:
    if django.VERSION >= (6, 1):
        watched.settings.MAILERS = {"default": {"BACKEND": LOCMEM}}
    watched.begin(task("fails", monitor=False), NOTIFY=[MAIL])
    watched.run("fails")
    watched.heard.wait_for("TaskRunFailed")
    watched.scheduler.stop()
    (sent,) = mail.outbox
    assert (sent.to, sent.subject) == (["ops@example.org"], "[cron default] Failed: fails")


def test_a_failing_channel_is_reported_and_does_not_affect_others(watched: Watched) -> None:
    closed = Receiver()
    closed.close()
    gone = {"kind": "slack", "url": closed.url, "name": "gone"}
    here = {"kind": "slack", "url": watched.receiver.url, "name": "here"}
    watched.begin(task("fails", monitor=False), NOTIFY=[gone, here])
    watched.run("fails")
    watched.taken(1)
    (failed,) = watched.heard.wait_for("NotificationFailed")
    assert failed.channel == "gone"
    assert "s3cret" not in failed.error


def test_polling_finds_results_of_other_processes(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = watched.receiver
    channel = {"kind": "slack", "url": receiver.url, "pause": 1}
    watched.begin(task(monitor=False), NOTIFY=[channel])
    watched.heard.wait_for("LeadershipGained")
    looked = threading.Event()
    compare = Observer.compare

    def seen(observer: Observer, look: Any) -> Any:
        found = compare(observer, look)
        if look.leads:
            looked.set()
        return found

    monkeypatch.setattr(Observer, "compare", seen)
    assert looked.wait(TIMEOUT)
    ScheduledTask.objects.update(failures=2)
    receiver.wait(lambda it: len(it.taken) == 1)
    assert "failed 2 times in a row" in receiver.taken[0].body.decode()
    late = datetime.now(UTC) - timedelta(hours=1)
    ScheduledTask.objects.update(failures=0, pending_retry_until=late, wake_at=None)
    receiver.wait(lambda it: b"Overdue" in b"".join(got.body for got in it.taken))
    receiver.wait(lambda it: b"Recovered" in b"".join(got.body for got in it.taken))


def test_a_poll_that_waits_for_the_database_ends_with_its_scheduler(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DECLARATIVE_CRON = {"NOTIFY": [MAIL]}
    monkeypatch.setattr(notifications, "_JOIN", 0.01)
    asked, answers = threading.Event(), threading.Event()

    def slow(watch: Notifications) -> None:
        asked.set()
        answers.wait(TIMEOUT)

    monkeypatch.setattr(Notifications, "_poll_if_due", slow)
    watch = Notifications()
    watch.begin([], lambda: None)
    first = watch._thread
    assert first is not None
    assert asked.wait(TIMEOUT)
    watch.end(0.1)
    watch.begin([], lambda: None)
    second = watch._thread
    answers.set()
    first.join(TIMEOUT)
    assert second is not None
    assert (first.is_alive, second.is_alive) == (False, True)
    watch.end(TIMEOUT)
    second.join(TIMEOUT)
    assert not second.is_alive


def test_a_scheduler_leaves_before_it_sends_queued_messages(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[int] = []

    class Slow:
        def begin(self, declarations: object, whose: object) -> None:
            there.clear()

        def end(self, seconds: float) -> None:
            there.append(SchedulerInstance.objects.filter(stopped_at=None).count())

    monkeypatch.setattr(watchers, "_watchers", [Slow()])
    scheduler.initialize([task(monitor=False)])
    assert scheduler.stop()
    assert there == [0]


def test_missed_and_paused_are_notified_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Notice] = []
    watch = Notifications()
    monkeypatch.setattr(watch, "add", told.append)
    at = datetime(2024, 1, 1, 10, tzinfo=UTC)
    missed = {"task_name": "t", "scheduled_time": at, "outcome": "missed", "at": at}
    watch._receive(events.TaskSkipped(reason="no_scheduler", **missed))
    watch._receive(events.TaskSkipped(reason="too_late", **missed))
    watch._receive(events.TaskPausedByFailures(at=at, task_name="t", failures=5, error="it broke"))
    assert events.TaskPausedByFailures in notifications._EVENTS
    assert [(each.occasion, each.words) for each in told] == [
        ("missed", "no scheduler was at work at 2024-01-01 10:00 UTC"),
        ("missed", "the occurrence of 2024-01-01 10:00 UTC was too old to be caught up"),
        ("failure", "5 failures in a row paused it until someone resumes it: it broke"),
    ]


def test_without_the_library_a_signature_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "standardwebhooks", None)
    channel = Channel("webhook", url="https://hooks.example.org/a", secrets=(SECRET,))
    at = datetime(2024, 1, 1, 10, tzinfo=UTC)
    with pytest.raises(DeliveryError, match="standardwebhooks is not installed"):
        channels.deliver(channel, messages.test_message("default", at, "ada"), uuid.uuid4(), at)


@pytest.mark.parametrize(("own", "seconds"), [(None, channels.MAIL_TIMEOUT), (3, 3)])
def test_a_mail_server_that_hangs_has_a_timeout(
    settings: Any, own: int | None, seconds: int
) -> None:
    if django.VERSION >= (6, 1):
        settings.MAILERS = {"default": {"OPTIONS": {"host": "localhost", "timeout": own}}}
    else:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_TIMEOUT = own
    assert channels._mail_connection().timeout == seconds


@pytest.mark.django_db
def test_a_deployment_whose_lease_is_over_is_leaderless(settings: Any) -> None:
    clock = system_clock
    assert attendance("default", "default", clock.database_time()) is None
    state = SchedulerState.objects.create(deployment="default", term=3)
    for seconds, is_long in ((30, False), (-50, True)):
        state.lease_expires_at = clock.now() + timedelta(seconds=seconds)
        state.save()
        found = attendance("default", "default", clock.database_time())
        assert found is not None
        # Without a live instance the deployment is leaderless even during the lease.
        assert (found.state.term, (found.leaderless() or 0) > 40) == (3, is_long)
        assert found.leaderless() is not None
