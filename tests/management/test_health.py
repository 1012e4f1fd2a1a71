"""``cron health``, ``outbox`` and ``notify``: who is alive, which events wait, who is told."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.models import OutboxEvent, SchedulerInstance, SchedulerState
from django_declarative_cron.monitoring import http_client
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.store.outbox import undelivered
from django_declarative_cron.store.status import attendance
from django_declarative_cron.testing import ManualClock, Simulation

from ..receiver import Post, Receiver
from ..store.test_manual_runs import Person
from .conftest import DELAY, HERE, START, Cron, run_child

TASKS = [("hourly", "0 * * * *", f"{HERE}.nothing", DELAY)]


@pytest.fixture
def sim(db: None) -> Simulation:
    return Simulation(start="2024-01-01T10:00:30Z", instances=2)


@pytest.fixture
def led(sim: Simulation) -> Simulation:
    """One scheduler leads, and another stands by."""
    for each in range(2):
        sim[each].initialize(TASKS)
        sim[each].poll()
    return sim


def test_a_scheduler_that_has_checked_in_is_healthy(cron: Cron, led: Simulation) -> None:
    """P34."""
    answer = cron("health", clock=led.clock)
    assert answer.code == 0
    (line,) = " ".join(answer.lines).splitlines()
    assert line.startswith("Healthy: 2 schedulers: ")
    assert line.count("(leader, last heartbeat 0 s ago)") == 1
    assert line.count("(standby, last heartbeat 0 s ago)") == 1


def test_before_the_first_scheduler_it_is_unhealthy(cron: Cron, sim: Simulation) -> None:
    answer = cron("health", clock=sim.clock)
    assert answer.code == 1
    missing = "no scheduler of deployment 'default' has ever sent a heartbeat"
    assert answer.err == f"Unhealthy: {missing}."


def test_silence_is_unhealthy_and_says_what_is_overdue(cron: Cron, led: Simulation) -> None:
    """P33."""
    later = ManualClock(led.clock.now() + timedelta(hours=1, minutes=2))
    answer = cron("health", clock=later)
    assert answer.code == 1
    assert "is running: no heartbeat in the last 30 s; the last was of " in answer.err
    assert answer.err.endswith("1 h 2 min ago. 1 task overdue.")


def test_a_process_that_only_its_watchdog_vouches_for_is_unhealthy(
    cron: Cron, led: Simulation
) -> None:
    SchedulerInstance.objects.update(mute_since=led.clock.now() - timedelta(minutes=5))
    answer = cron("health", "--local", clock=led.clock)
    assert answer.code == 1
    assert "5 min ago" in answer.err


def test_a_run_in_the_foreground_is_no_scheduler(cron: Cron, led: Simulation) -> None:
    led[0].stop()
    led[1].stop()
    led.jump_to("2024-01-01T11:02:30Z")
    person = Person(led)
    start = person.start("hourly")
    answer = cron("health", "--format", "json", clock=led.clock)
    assert answer.code == 1
    assert answer.data["schedulers"] == []
    assert answer.data["answer"].endswith("1 h 2 min ago, and it has stopped.")
    told = cron("explain", "hourly", "--at", "2024-01-01T11:00Z", clock=led.clock)
    assert "because no scheduler is at work" in " ".join(told.lines)
    person.end(start)
    told = cron("health", clock=led.clock)
    assert told.err.endswith("1 h 2 min ago, and it has stopped. 1 task overdue.")


def test_a_scheduler_that_stops_or_has_an_older_set_does_not_stand_by(
    cron: Cron, led: Simulation
) -> None:
    leader = SchedulerState.objects.get().leader
    other = SchedulerInstance.objects.exclude(pk=leader.pk if leader else None)
    other.update(digest="older")
    assert "(outdated registration set, last heartbeat" in " ".join(
        cron("health", clock=led.clock).lines
    )
    other.update(stop_requested_at=led.now)
    assert "(stopping, last heartbeat" in " ".join(cron("health", clock=led.clock).lines)


def test_runs_left_in_flight_are_said(cron: Cron, led: Simulation) -> None:
    led[0].crash()
    led[1].crash()
    answer = cron("health", clock=led.clock)
    assert (answer.code, answer.err.endswith(", which left with unfinished runs.")) == (1, True)


def test_a_scheduler_that_lets_tasks_wait_is_unhealthy(
    cron: Cron, led: Simulation, declare: Any
) -> None:
    hangs = ManualClock(led.clock.now() + timedelta(hours=1, minutes=2))
    SchedulerInstance.objects.update(heartbeat_at=hangs.now())
    answer = cron("health", clock=hangs)
    assert answer.code == 1
    assert "1 task overdue, despite 2 schedulers" in answer.err
    # A probe restarts what it probes: that is not to be done for the fault of another.
    assert cron("health", "--local", clock=hangs).code == 0


@pytest.mark.parametrize(
    ("lease", "silence", "limit", "code"),
    [(15, 10, "9.9", 1), (15, 10, "10.1", 0), (15, 90, None, 1), (120, 90, None, 0)],
)
def test_how_long_a_silence_is_allowed_is_given_or_follows_from_the_lease(
    cron: Cron,
    led: Simulation,
    settings: Any,
    lease: int,
    silence: int,
    limit: str | None,
    code: int,
) -> None:
    settings.DECLARATIVE_CRON = {"LEASE": lease}
    later = ManualClock(led.clock.now() + timedelta(seconds=silence))
    words = () if limit is None else ("--max-age", limit)
    assert cron("health", *words, clock=later).code == code


def test_a_probe_may_ask_for_its_own_host_and_process(cron: Cron, led: Simulation) -> None:
    mine, other = SchedulerInstance.objects.order_by("id")
    SchedulerInstance.objects.filter(id=mine.id).update(host=socket.gethostname(), pid=7)
    SchedulerInstance.objects.filter(id=other.id).update(host="elsewhere", pid=8)

    def ask(*words: str) -> tuple[int, int]:
        answer = cron("health", *words, "--format", "json", clock=led.clock)
        return answer.code, len(answer.data["schedulers"])

    assert ask() == (0, 2)
    assert ask("--local") == (0, 1)
    assert ask("--pid", "8") == (0, 1)
    assert ask("--local", "--pid", "8") == (1, 0)
    answer = cron("health", "--local", "--pid", "8", clock=led.clock)
    assert "is running on this host as process 8" in answer.err


def test_the_answer_for_programs(cron: Cron, led: Simulation) -> None:
    answer = cron("health", "--format", "json", clock=led.clock)
    data = answer.data
    assert (answer.code, data["healthy"], data["overdue"], data["max_age"]) == (0, True, 0, 30.0)
    assert sorted(each["leads"] for each in data["schedulers"]) == [False, True]
    led[0].crash()
    led[1].crash()
    led.jump_to("2024-01-01T11:05Z")
    answer = cron("health", "--format", "json", clock=led.clock)
    assert (answer.code, answer.data["healthy"], answer.data["overdue"]) == (1, False, 1)


def test_it_takes_four_queries_at_most(
    cron: Cron, led: Simulation, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(4):
        cron("health", clock=led.clock)


@pytest.mark.slow
def test_before_migrate_it_names_the_command(project_environment: dict[str, str]) -> None:
    done = run_child("cron", "health", env=project_environment)
    assert done.returncode == 2
    assert "python manage.py migrate" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite is always there")
def test_a_database_that_is_away_is_unhealthy(project_environment: dict[str, str]) -> None:
    away = {"DDC_TEST_DATABASE": "postgres", "DATABASE_URL": "postgres://x@127.0.0.1:1/x"}
    done = run_child("cron", "health", env={**project_environment, **away})
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


# --- events that wait for their receiver ---

NOWHERE = "http://127.0.0.1:9/"
PATIENT = ("--max-age", "600")


@pytest.fixture
def backlog(db: None, post_to: Post) -> Simulation:
    """One run's three events wait; the clock is a minute past them."""
    post_to(NOWHERE)
    made = Simulation("2024-01-01T10:00:00Z")
    made.initialize([("t", "0 * * * *", made.job(), timedelta(minutes=5))])
    made.advance_to("2024-01-01T10:01:00Z")
    return made


def refuse(error: str = "503 Service Unavailable") -> None:
    OutboxEvent.objects.filter(type="cron.triggered").update(attempts=2, error=error)


def test_events_on_their_way_are_counted_and_not_made_a_fuss_of(
    cron: Cron, backlog: Simulation
) -> None:
    answer = cron("health", *PATIENT, "--format", "json", clock=backlog.clock)
    assert answer.data["events"] == {
        "waiting": 3,
        "refused": 0,
        "dead_lettered": 0,
        "oldest": "2024-01-01T10:00:00Z",
        "age": 60.0,
        "error": "",
    }
    assert "event" not in cron("health", *PATIENT, clock=backlog.clock).out


def test_what_is_held_up_is_said_with_its_age_and_its_reason(
    cron: Cron, backlog: Simulation
) -> None:
    refuse()
    OutboxEvent.objects.filter(type="job.started").update(dead_lettered_at=backlog.now)
    answer = cron("health", *PATIENT, clock=backlog.clock)
    assert answer.code == 0
    said = " ".join(answer.out.split())
    assert said.endswith(
        "2 events undelivered for up to 1 min (503 Service Unavailable). 1 event dead-lettered."
    )


def test_dead_lettered_events_are_requeued(cron: Cron, backlog: Simulation) -> None:
    refuse()
    OutboxEvent.objects.filter(attempts=2).update(dead_lettered_at=backlog.now)
    data = cron("outbox", "--format", "json").data
    assert (data["total"], data["requeued"]) == (3, 0)
    assert data["events"][0]["dead_lettered_at"] == "2024-01-01T10:01:00Z"
    assert cron("outbox", "--requeue").out.splitlines()[0] == "1 event requeued."
    assert not OutboxEvent.objects.exclude(dead_lettered_at=None).exists()
    OutboxEvent.objects.all().delete()
    assert cron("outbox").out.strip() == "No event waits."


def test_without_a_sink_nothing_is_asked(cron: Cron, backlog: Simulation, settings: Any) -> None:
    settings.DECLARATIVE_CRON = {}
    with CaptureQueriesContext(connection) as caught:
        answer = cron("health", *PATIENT, "--format", "json", clock=backlog.clock)
    assert answer.data["events"] is None
    assert not [query for query in caught.captured_queries if "outboxevent" in query["sql"]]


def test_before_the_first_scheduler_nothing_waits(db: None, post_to: Post) -> None:
    post_to(NOWHERE)
    assert undelivered("default", "default", system_clock.database_time()) is None


# --- notifications ---

pytestmark = pytest.mark.django_db


@pytest.fixture
def channels(
    settings: Any, receiver: Receiver, still_clock: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Name two channels, of which one tells of all and one of overdue tasks."""
    monkeypatch.setattr(http_client, "BACKOFF", 0.0)
    settings.DECLARATIVE_CRON = {
        "NOTIFY": [
            {"kind": "webhook", "url": receiver.url, "name": "hook"},
            {"kind": "slack", "url": receiver.url, "name": "chat", "on": ["overdue"]},
        ]
    }
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def polled(db: None) -> Simulation:
    """A scheduler at half a minute past ten, with an hourly task."""
    made = Simulation(start=START)
    made.initialize(TASKS)
    made.poll()
    return made


def bodies(receiver: Receiver) -> list[Any]:
    return [json.loads(got.body) for got in receiver.got]


def test_a_test_message_goes_to_every_channel(
    cron: Cron, channels: None, receiver: Receiver
) -> None:
    answer = cron("notify", "--test", "--user", "ada")
    assert (answer.code, answer.lines) == (0, ["hook: sent.", "chat: sent."])
    hook, chat = bodies(receiver)
    assert hook["subject"] == "[cron default] Test"
    assert hook["notices"][0]["words"].startswith("ada asked for this message")
    assert "Test. ada asked" in chat["text"]


def test_a_test_of_one_channel_says_why_it_was_not_taken(
    cron: Cron, channels: None, receiver: Receiver
) -> None:
    receiver.behave = lambda got: 404
    answer = cron("notify", "--test", "--channel", "chat")
    assert (answer.code, answer.err) == (1, "Not sent. chat: it answered 404.")
    assert len(receiver.got) == 1


@pytest.mark.parametrize("name", ["x", ""])
def test_an_unknown_channel_is_wrong_use(cron: Cron, channels: None, name: str) -> None:
    answer = cron("notify", "--test", "--channel", name)
    error = f"There is no channel {name!r}; there are 'hook', 'chat'."
    assert (answer.code, answer.err) == (2, error)


def test_without_channels_it_is_wrong_use(cron: Cron) -> None:
    answer = cron("notify", "--check")
    error = "No channel is declared: set NOTIFY in DECLARATIVE_CRON."
    assert (answer.code, answer.err) == (2, error)


def test_before_the_first_scheduler_people_are_told(
    cron: Cron, channels: None, receiver: Receiver
) -> None:
    answer = cron("notify", "--check")
    assert answer.code == 1
    assert "no scheduler has ever sent a heartbeat" in answer.err
    (told,) = bodies(receiver)
    assert [each["occasion"] for each in told["notices"]] == ["no_leader"]


def test_programs_are_told_what_people_are(
    cron: Cron, channels: None, receiver: Receiver, polled: Simulation
) -> None:
    fine = cron("notify", "--check", "--format", "json", clock=polled.clock)
    assert fine.data == {"healthy": True, "notices": [], "notified": 0, "errors": []}
    assert fine.code == 0
    SchedulerState.objects.all().delete()
    answer = cron("notify", "--check", "--format", "json")
    (notice,) = answer.data.pop("notices")
    assert notice["words"] == "no scheduler has ever sent a heartbeat"
    assert (answer.code, answer.data["healthy"], answer.data["notified"]) == (1, False, 1)
    receiver.behave = lambda got: 404 if b"text" in got.body[:7] else 204
    tested = cron("notify", "--test", "--format", "json")
    assert tested.data == [
        {"channel": "hook", "error": ""},
        {"channel": "chat", "error": "it answered 404"},
    ]
    assert tested.code == 1


def test_after_a_proper_stop_people_are_told_for_how_long_nobody_was_there(
    cron: Cron, channels: None, polled: Simulation
) -> None:
    polled.stop()
    later = ManualClock(polled.clock.now() + timedelta(minutes=5))
    told = " ".join(cron("notify", "--check", clock=later).err.split())
    assert "the last heartbeat is 300 s old" in told
    lead = attendance("default", "default", later.database_time())
    assert lead is not None
    assert (lead.present, lead.leaderless()) == ((), 300.0)


def test_silence_is_told_once_and_again_after_its_time(
    cron: Cron, channels: None, receiver: Receiver, polled: Simulation
) -> None:
    assert cron("notify", "--check", clock=polled.clock).code == 0
    later = ManualClock(polled.clock.now() + timedelta(hours=1, minutes=2))
    answer = cron("notify", "--check", clock=later)
    assert answer.code == 1
    assert "(2 channels notified.)" in " ".join(answer.err.split())
    hook, chat = bodies(receiver)
    assert [each["occasion"] for each in hook["notices"]] == ["no_leader", "overdue"]
    assert hook["notices"][1]["task"] == "hourly"
    assert "Overdue. hourly: it should have started at 11:00:00 UTC" in chat["text"]
    # People know already; the exit code says it again.
    assert cron("notify", "--check", clock=later).code == 1
    assert len(receiver.got) == 2
    cache.clear()
    assert cron("notify", "--check", clock=later).code == 1
    assert len(receiver.got) == 4


def test_what_was_not_taken_is_told_the_next_time(
    cron: Cron, channels: None, receiver: Receiver
) -> None:
    receiver.behave = lambda got: 500
    answer = cron("notify", "--check")
    assert answer.code == 1
    assert "hook: it answered 500" in answer.err
    assert "(0 channels notified.)" in " ".join(answer.err.split())
    receiver.behave = lambda got: 204
    assert "(1 channel notified.)" in " ".join(cron("notify", "--check").err.split())


def test_a_cache_that_fails_keeps_nobody_from_being_told(
    cron: Cron, channels: None, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("no cache")

    monkeypatch.setattr("django_declarative_cron.monitoring.dead_man_switch.cache.add", fail)
    assert cron("notify", "--check").code == 1
    assert len(receiver.taken) == 1
