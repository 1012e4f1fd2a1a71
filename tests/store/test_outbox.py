"""What is written into the outbox: together with what it tells, and only for a sink."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from django_declarative_cron import signals
from django_declarative_cron.core import events
from django_declarative_cron.core.event_sink import envelopes
from django_declarative_cron.models import OutboxEvent, ScheduledTask, TaskRun
from django_declarative_cron.store import claims, operator_actions, outbox, recovery
from django_declarative_cron.store.outbox import name_of
from django_declarative_cron.store.recovery import unanswered
from django_declarative_cron.testing import Simulation

from ..receiver import Post
from .conftest import Deployment, claim

pytestmark = pytest.mark.django_db

FIVE_MINUTES = timedelta(minutes=5)
NOWHERE = "http://127.0.0.1:9/"


def bodies() -> list[dict[str, Any]]:
    return [json.loads(body) for body in OutboxEvent.objects.values_list("body", flat=True)]


def kinds() -> list[str]:
    return [each["type"] for each in bodies()]


def played(outcomes: list[str]) -> Simulation:
    sim = Simulation("2024-01-01T10:01:30Z")
    sim.initialize([("t", "0 * * * *", sim.job(outcomes), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T11:00Z")
    return sim


@pytest.fixture
def sink(post_to: Post) -> None:
    """Let there be a sink, which nobody reaches."""
    post_to(NOWHERE)


@pytest.fixture
def heard() -> Any:
    told: list[Any] = []

    def listen(**values: Any) -> None:
        told.append(values)

    for signal in signals.EXTERNAL_SIGNALS.values():
        signal.connect(listen)
    yield told
    for signal in signals.EXTERNAL_SIGNALS.values():
        signal.disconnect(listen)


def test_without_a_sink_nothing_is_written(caplog: pytest.LogCaptureFixture) -> None:
    played(["ok"])
    assert not OutboxEvent.objects.exists()
    assert "Telling other programs" not in caplog.text


@pytest.mark.requirement("002 CRON-29")
def test_a_run_is_told_by_its_rows(sink: None) -> None:
    sim = played(["ok"])
    assert kinds() == ["cron.triggered", "job.started", "job.completed"]
    (run,) = sim.runs("t")
    triggered, started, completed = bodies()
    assert triggered["data"] == {
        "cron_name": "t",
        "cron_expression": "0 * * * *",
        "timezone": "UTC",
        "job_id": triggered["data"]["job_id"],
        "job_type": sim.task("t").callback,
        "run_count": 1,
        "scheduled_time": "2024-01-01T11:00:00Z",
        "actual_time": "2024-01-01T11:00:00Z",
        "reason": "due",
    }
    assert triggered["data"]["job_id"] == str(name_of(run.pk, run.scheduled_for))
    assert {each["data"]["job_id"] for each in bodies()} == {triggered["data"]["job_id"]}
    assert (started["data"]["attempt"], started["data"]["queue"]) == (1, "default")
    assert completed["data"]["duration_ms"] == 0
    assert completed["source"] == f"urn:uuid:{sim.task('t').scheduler_identifier}"


def test_a_failure_is_told_with_its_retry(sink: None) -> None:
    sim = played(["fail", "ok"])
    sim.advance_to("2024-01-01T11:05Z")
    assert kinds() == [
        *("cron.triggered", "job.started", "job.failed", "job.retrying"),
        *("job.started", "job.completed"),
    ]
    failed, retrying = bodies()[2:4]
    assert failed["data"]["error"] == {"type": "SimulatedFailure", "message": "fail"}
    assert retrying["data"]["next_retry_at"] == "2024-01-01T11:05:00Z"
    assert [each["data"]["attempt"] for each in bodies()[2:]] == [1, 1, 2, 2]


def test_a_crash_is_told_with_its_restart(sink: None) -> None:
    sim = Simulation("2024-01-01T10:00:00Z")
    job = sim.job(duration=timedelta(minutes=10))
    sim.initialize([("t", "0 * * * *", job, FIVE_MINUTES)])
    sim.crash()
    OutboxEvent.objects.all().delete()
    sim.initialize([("t", "0 * * * *", job, FIVE_MINUTES)])
    assert kinds() == ["job.retrying", "job.started"]
    retrying, started = bodies()
    assert retrying["data"]["reason"] == "interrupted"
    assert (retrying["data"]["attempt"], started["data"]["attempt"]) == (1, 2)


def test_a_crash_that_another_leader_finds_is_told_once(sink: None, heard: list[Any]) -> None:
    sim = Simulation("2024-01-01T10:00:00Z", instances=2)
    sim.initialize([("t", "0 * * * *", sim.job(duration=timedelta(minutes=10)), FIVE_MINUTES)])
    assert kinds() == ["cron.triggered", "job.started"]
    for each in (0, 1):
        sim[each].crash()
        sim.advance_to(sim.now + timedelta(minutes=1))
        if TaskRun.objects.filter(outcome="interrupted").exists():
            break
    assert kinds()[2:] == ["job.retrying", "job.started"]
    assert [each["envelope"]["type"] for each in heard] == kinds()


@pytest.mark.requirement("002 CRON-30")
def test_what_did_not_run_is_told(sink: None, django_capture_on_commit_callbacks: Any) -> None:
    sim = Simulation("2024-01-01T10:01:30Z")
    sim.initialize([("t", "0 * * * *", sim.job(), FIVE_MINUTES)])
    operator_actions.pause(["t"], operator_actions.Act(author="ada", at=sim.now))
    sim.advance_to("2024-01-01T13:30Z")
    operator_actions.resume(["t"], operator_actions.Act(author="ada", at=sim.now))
    (skipped,) = bodies()
    assert skipped["type"] == skipped["event"] == "cron.skipped"
    assert skipped["subject"] == "t"
    assert skipped["data"] == {
        "cron_name": "t",
        "cron_expression": "0 * * * *",
        "timezone": "UTC",
        "reason": "disabled",
        "scheduled_time": "2024-01-01T13:00:00Z",
        "scheduled_from": "2024-01-01T11:00:00Z",
        "count": 3,
    }


def test_what_nobody_evaluated_is_missed_and_not_skipped(sink: None) -> None:
    sim = Simulation("2024-01-01T10:01:30Z")
    registrations = [("t", "0 * * * *", sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.stop()
    sim.jump_to("2024-01-01T13:30Z")
    sim.initialize(registrations)
    assert kinds() == ["cron.missed", "cron.triggered", "job.started", "job.completed"]
    assert bodies()[0]["data"]["count"] == 2


@pytest.mark.requirement("002 CRON-16")
def test_what_fell_into_a_gap_is_skipped(sink: None) -> None:
    sim = Simulation("2026-03-07T12:00Z", time_zone="America/New_York")
    sim.initialize([("t", "30 2 * * *", sim.job(), FIVE_MINUTES)])
    sim.advance_to("2026-03-08T12:00Z", at_least_every=timedelta(hours=1))
    assert kinds() == ["cron.skipped"]
    data = bodies()[0]["data"]
    assert (data["reason"], data["local_time"]) == ("dst_skip", "2026-03-08T02:30:00")


def overlapping(policy: str, minutes: int = 7, outcomes: list[str] | None = None) -> Simulation:
    """Run a task every five minutes that takes longer than that."""
    sim = Simulation("2024-01-01T10:01:00Z")
    job = sim.job(outcomes or ["ok"], timedelta(minutes=minutes))
    entry = {"name": "t", "cron": "*/5 * * * *", "callback": job, "overlap_policy": policy}
    sim.initialize([entry])
    return sim


def test_what_an_overlap_cost_names_the_run_in_its_way(sink: None) -> None:
    overlapping("skip").advance_to("2024-01-01T10:11Z")
    assert kinds() == ["cron.triggered", "job.started", "cron.skipped"]
    triggered, _, skipped = bodies()
    assert skipped["data"]["reason"] == "overlap_skip"
    assert skipped["data"]["active_job_id"] == triggered["data"]["job_id"]


@pytest.mark.requirement("002 CRON-29")
def test_a_run_that_waits_is_triggered_once(sink: None) -> None:
    overlapping("enqueue").advance_to("2024-01-01T10:13Z")
    assert kinds() == [
        *("cron.triggered", "job.started", "cron.triggered", "job.enqueued"),
        *("job.completed", "job.started"),
    ]
    _, first, waits, enqueued, _, second = bodies()
    ids = [each["data"]["job_id"] for each in (first, waits, enqueued, second)]
    assert ids[1] == ids[2] == ids[3] != ids[0]
    assert [each["data"]["run_count"] for each in (first, waits, second)] == [1, 2, 2]
    assert waits["data"]["scheduled_time"] == "2024-01-01T10:10:00Z"


@pytest.mark.parametrize(
    ("declared", "shown"), [(("other", "0 0 * * *"), None), (("t", "0 3 * * *"), "0 3 * * *")]
)
def test_a_run_that_had_not_begun_is_cancelled_with_its_task_or_its_schedule(
    sink: None, declared: tuple[str, str], shown: str | None
) -> None:
    sim = overlapping("enqueue")
    sim.advance_to("2024-01-01T10:11Z")
    waited = bodies()[-1]["data"]
    sim.initialize([(*declared, sim.job(), FIVE_MINUTES)])
    (last,) = bodies()[4:]
    assert (last["type"], last["data"]["job_id"]) == ("job.cancelled", waited["job_id"])
    if shown is not None:  # The task is still there, and is told of.
        told = [last["data"][key] for key in ("cron_expression", "timezone", "job_type")]
        assert told == [shown, "UTC", waited["job_type"]]


def test_a_run_that_makes_room_is_cancelled(sink: None) -> None:
    overlapping("cancel_previous").advance_to("2024-01-01T10:13Z")
    assert kinds()[:4] == ["cron.triggered", "job.started"] * 2
    assert kinds()[4:] == ["job.cancelled"]
    assert bodies()[4]["data"]["job_id"] == bodies()[0]["data"]["job_id"]


def test_the_last_attempt_is_told_with_its_reason(post_to: Post) -> None:
    post_to(NOWHERE, events=["job.failed", "job.retrying", "job.discarded"])
    sim = Simulation("2024-01-01T10:01:00Z")
    retry = {"max_attempts": 2, "jitter": False, "on_exhaustion": "dead_letter"}
    entry = {"name": "t", "cron": "0 * * * *", "callback": sim.job(["fail"])}
    sim.initialize([{**entry, "options": {"retry": retry}}])
    sim.advance_to("2024-01-01T11:01Z")
    assert kinds() == ["job.failed", "job.retrying", "job.failed", "job.discarded"]
    data = bodies()[-1]["data"]
    assert (data["reason"], data["attempt"], data["dead_letter"]) == ("attempts", 2, True)
    assert bodies()[0]["data"]["max_attempts"] == 2


def test_only_the_types_asked_for_are_written(post_to: Post) -> None:
    post_to(NOWHERE, events=["cron.*", "job.failed"])
    played(["fail", "ok"])
    assert kinds() == ["cron.triggered", "job.failed"]


def test_the_source_is_the_projects_choice(post_to: Post) -> None:
    post_to(NOWHERE, source="https://shop.example.org/cron")
    played(["ok"])
    assert {each["source"] for each in bodies()} == {"https://shop.example.org/cron"}


def test_what_is_rolled_back_is_not_told(sink: None, monkeypatch: pytest.MonkeyPatch) -> None:
    sim = Simulation("2024-01-01T10:01:30Z")
    sim.initialize([("t", "0 * * * *", sim.job(), FIVE_MINUTES)])
    seen: list[int] = []
    insert = outbox.database.insert

    def refuse(using: str, rows: Any) -> None:
        insert(using, rows)
        if count := OutboxEvent.objects.count():
            seen.append(count)
            raise OperationalError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(outbox.database, "insert", refuse)
        sim.advance_to("2024-01-01T11:00Z")
    assert (seen, OutboxEvent.objects.count()) == ([2], 0)
    sim.advance_to("2024-01-01T11:01Z")
    assert kinds() == ["cron.triggered", "job.started", "job.completed"]


def test_an_event_that_cannot_be_worded_stops_no_task(
    sink: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outbox, "envelopes", lambda event: [{"type": object()}])
    sim = played(["ok"])
    assert [run.outcome for run in sim.runs("t")] == ["succeeded"]
    assert not OutboxEvent.objects.exists()
    assert "Telling other programs of an event failed; it is not told" in caplog.text


def _statements(sim: Simulation) -> list[str]:
    with CaptureQueriesContext(
        connection,
    ) as caught:
        sim.advance_to("2024-01-01T11:00Z")
    sent = [query["sql"] for query in caught.captured_queries]
    return [sql for sql in sent if sql != "SELECT last_insert_rowid()"]  # SQLite's, of no table.


def _fresh(name: str) -> Simulation:
    sim = Simulation("2024-01-01T10:59:59Z", deployment=name)
    sim.initialize([(f"t{n}", "0 * * * *", sim.job(), FIVE_MINUTES) for n in range(20)])
    return sim


def test_a_sink_costs_one_statement_in_each_transaction_and_none_without(post_to: Post) -> None:
    without = _statements(_fresh("without"))
    assert not [sql for sql in without if "outboxevent" in sql]
    sim = _fresh("with")
    post_to(NOWHERE)
    written = _statements(sim)
    mine = [sql for sql in written if "outboxevent" in sql]
    # SQLite tells how often, first.
    assert all("INSERT INTO" in sql for sql in mine)
    # The claim, and the results of all that ended.
    assert (len(mine), len(written)) == (2, len(without) + 2)


def test_signals_hand_over_the_same_envelopes(sink: None, heard: list[Any]) -> None:
    played(["fail", "ok"])
    assert [each["envelope"] for each in heard] == bodies()
    assert all(each["data"] is each["envelope"]["data"] for each in heard)
    assert type(heard[0]["event"]).__name__ == "TaskRunStarted"


def test_signals_need_no_sink(heard: list[Any]) -> None:
    played(["ok"])
    assert [each["envelope"]["type"] for each in heard] == [
        *("cron.triggered", "job.started", "job.completed")
    ]


def test_a_receiver_that_raises_keeps_nobody_from_hearing(
    heard: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    def shout(**_: Any) -> None:
        raise RuntimeError("too loud")

    signals.cron_triggered.connect(shout)
    try:
        sim = played(["ok"])
    finally:
        signals.cron_triggered.disconnect(shout)
    assert [run.outcome for run in sim.runs("t")] == ["succeeded"]
    assert len(heard) == 3
    assert "too loud" in caplog.text


def test_what_recovery_told_is_not_written_again_with_what_is_decided(
    sink: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = Deployment(2)
    deployment.initialize()
    deployment.owe_all()
    ScheduledTask.objects.filter(name="t0").update(wake_at=None)
    told = events.TaskSkipped(
        at=deployment.now, task_name="t0", reason="overlap", scheduled_time=deployment.now
    )
    monkeypatch.setattr(recovery, "reap", lambda *_: [told])
    claimed = claims.claim_due(deployment.member, deployment.by_name, deployment.now, reaping=True)
    assert [claim.task_name for claim in claimed.claims] == ["t1"]
    assert sum(event is told for event in claimed.events) == 1
    assert [run.task_name for run in TaskRun.objects.all()] == ["t1"]
    assert set(OutboxEvent.objects.values_list("task_name", flat=True)) == {"t1"}


def test_a_start_whose_commit_was_not_answered_is_told_as_it_was_kept(
    sink: None, transactional_db: None
) -> None:
    deployment = Deployment(1)
    deployment.initialize()
    deployment.owe_all()
    claim(deployment)
    kept = bodies()
    (found,) = unanswered(deployment.member, (), deployment.by_name)
    assert envelopes(found.started) == kept
    assert OutboxEvent.objects.count() == 2
