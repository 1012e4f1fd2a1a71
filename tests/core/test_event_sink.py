"""Envelopes: valid for Open Job Spec (002 Events) and CloudEvents 1.0, with stable ids."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_structured_event
from cloudevents.core.formats.json import JSONFormat

from django_declarative_cron.core import events
from django_declarative_cron.core.channels import CONTENT_TYPE
from django_declarative_cron.core.event_sink import SKIPPED, SOURCES, TYPES, envelopes
from django_declarative_cron.core.events import Facts

NOON = datetime(2026, 2, 12, 12, tzinfo=UTC)
LATER = NOON + timedelta(milliseconds=123)
DEPLOYMENT = UUID("0c5f0f6a-3a0b-4f55-8a5b-5d6b1a1a2f10")
JOB = UUID("019c51b8-ee00-7000-8000-00000000002a")
FACTS = Facts(
    deployment=DEPLOYMENT,
    source=f"urn:uuid:{DEPLOYMENT}",
    cron="0 9 * * *",
    timezone="America/New_York",
    job_type="report.generate",
    queue="reports",
    attempt=1,
    scheduled_time=NOON,
    job=JOB,
    blocked_by=UUID("019c4c90-9600-7000-8000-000000000029"),
)
STARTED = events.TaskRunStarted(
    at=LATER,
    task_name="daily-report",
    scheduled_time=NOON,
    actual_time=LATER,
    run_count=43,
    run=42,
    facts=FACTS,
)
COMPLETED = events.TaskRunCompleted(
    at=LATER, task_name="daily-report", duration=0.5, run=42, facts=FACTS
)
FAILED = events.TaskRunFailed(
    at=LATER, task_name="daily-report", duration=0.5, error="ValueError: no", run=42, facts=FACTS
)
CHANGED = replace(FAILED, history_only=True)
EXHAUSTED = events.TaskRetriesExhausted(
    at=LATER,
    task_name="daily-report",
    scheduled_time=NOON,
    attempt=3,
    reason="attempts",
    ends_as="dead_letter",
    error="ValueError: no",
    run=42,
    facts=FACTS,
)
WAITING = events.TaskRunWaiting(
    at=LATER,
    task_name="daily-report",
    scheduled_time=NOON,
    behind=41,
    waiting=1,
    run=42,
    facts=FACTS,
)
FETCHED = events.TaskRunFetched(
    at=LATER, task_name="daily-report", scheduled_time=NOON, worker="w1", run=42, facts=FACTS
)
CANCELLED = events.TaskRunCancelled(
    at=LATER, task_name="daily-report", duration=0.5, run=42, facts=FACTS
)
DROPPED = events.TaskRunCancelRequested(
    at=LATER, task_name="daily-report", run=42, reason="overridden", waits=True, facts=FACTS
)
RETRIED = replace(FAILED, next_retry_at=NOON + timedelta(minutes=1))
INTERRUPTED = events.TaskRunInterrupted(
    at=LATER,
    task_name="daily-report",
    scheduled_time=NOON,
    old_instance="a",
    new_instance="b",
    run=42,
    facts=FACTS,
)
SKIPPED_ONE = events.TaskSkipped(
    at=LATER, task_name="daily-report", reason="overlap_skip", scheduled_time=NOON, facts=FACTS
)
ALL = [
    *(STARTED, replace(STARTED, attempt=2), COMPLETED, FAILED, RETRIED, INTERRUPTED),
    *(replace(INTERRUPTED, restarts=False), WAITING, replace(STARTED, waited=42), CHANGED),
    *(replace(STARTED, facts=replace(FACTS, offered=True)), FETCHED),
    *(EXHAUSTED, CANCELLED, DROPPED, replace(DROPPED, waits=False)),
    *(replace(SKIPPED_ONE, reason=reason) for reason in SKIPPED),
    replace(SKIPPED_ONE, reason="no_scheduler", outcome="missed"),
    replace(SKIPPED_ONE, reason="dst_skip", detail="2026-03-08T02:30:00"),
]
EVERY = [envelope for event in ALL for envelope in envelopes(event)]


def told(event: events.Event) -> list[str]:
    return [envelope["type"] for envelope in envelopes(event)]


def ids(found: list[dict[str, Any]]) -> list[str]:
    return [f"{n}-{envelope['type']}" for n, envelope in enumerate(found)]


def test_each_of_our_events_has_its_types() -> None:
    assert [told(event) for event in ALL[:16]] == [
        ["cron.triggered", "job.started"],
        ["job.started"],
        ["job.completed"],
        ["job.failed"],
        ["job.failed", "job.retrying"],
        ["job.retrying"],
        ["job.cancelled"],
        ["cron.triggered", "job.enqueued"],
        ["job.started"],
        ["job.failed", "job.discarded"],
        ["cron.triggered", "job.enqueued"],
        ["job.started"],
        ["job.discarded"],
        ["job.cancelled"],
        ["job.cancelled"],
        [],
    ]
    assert {envelope["type"] for envelope in EVERY} == set(TYPES)
    assert {type(event) for event in ALL} >= set(SOURCES)


@pytest.mark.parametrize("envelope", EVERY, ids=ids(EVERY))
def test_the_sdk_of_cloudevents_takes_every_envelope(envelope: dict[str, Any]) -> None:
    body = json.dumps(envelope).encode()
    message = HTTPMessage(headers={"content-type": CONTENT_TYPE}, body=body)
    event = from_structured_event(message, JSONFormat())
    assert event.get_id() == envelope["id"]
    assert event.get_type() == envelope["type"]
    assert event.get_source() == envelope["source"]
    assert event.get_subject() == envelope["subject"]
    assert event.get_specversion() == "1.0"
    assert event.get_time() == LATER
    assert event.get_data() == envelope["data"]
    assert event.get_extension("event") == envelope["type"]
    assert event.get_extension("timestamp") == envelope["time"]


@pytest.mark.parametrize("envelope", EVERY, ids=ids(EVERY))
def test_every_envelope_is_legal_by_the_letter(envelope: dict[str, Any]) -> None:
    assert all(re.fullmatch(r"[a-z0-9]{1,20}", attribute) for attribute in envelope)
    assert all(isinstance(value, str) for key, value in envelope.items() if key != "data")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", envelope["time"])
    assert envelope["event"] == envelope["type"]
    assert envelope["timestamp"] == envelope["time"]
    assert None not in envelope["data"].values()
    if envelope["type"].startswith("job."):
        assert envelope["subject"] == envelope["data"]["job_id"]
        assert envelope["subject"] == str(JOB)
    else:
        assert envelope["subject"] == envelope["data"]["cron_name"] == "daily-report"


@pytest.mark.requirement("002 CRON-29")
def test_a_trigger_has_the_fields_of_002() -> None:
    triggered = envelopes(STARTED)[0]
    assert (triggered["event"], triggered["timestamp"]) == (
        "cron.triggered",
        "2026-02-12T12:00:00.123Z",
    )
    assert triggered["data"] == {
        "cron_name": "daily-report",
        "cron_expression": "0 9 * * *",
        "timezone": "America/New_York",
        "job_id": str(JOB),
        "job_type": "report.generate",
        "run_count": 43,
        "scheduled_time": "2026-02-12T12:00:00Z",
        "actual_time": "2026-02-12T12:00:00.123Z",
        "reason": "due",
    }


@pytest.mark.requirement("002 CRON-30")
def test_a_skip_has_the_fields_of_002() -> None:
    (skipped,) = envelopes(SKIPPED_ONE)
    assert skipped["data"] == {
        "cron_name": "daily-report",
        "cron_expression": "0 9 * * *",
        "timezone": "America/New_York",
        "reason": "overlap_skip",
        "active_job_id": str(FACTS.blocked_by),
        "scheduled_time": "2026-02-12T12:00:00Z",
        "count": 1,
    }


@pytest.mark.requirement("002 CRON-30")
def test_a_skip_has_one_of_the_three_reasons_and_no_other() -> None:
    given = {e["data"]["reason"] for e in EVERY if e["type"] == "cron.skipped"}
    assert given == {"overlap_skip", "disabled", "dst_skip"}
    (coalesced,) = envelopes(replace(SKIPPED_ONE, reason="coalesced"))
    assert "active_job_id" not in coalesced["data"]
    (missed,) = envelopes(replace(SKIPPED_ONE, reason="no_scheduler", outcome="missed"))
    assert (missed["type"], missed["data"]["reason"]) == ("cron.missed", "no_scheduler")
    (new,) = envelopes(replace(SKIPPED_ONE, reason="a reason of another version"))
    assert new["data"]["reason"] == "disabled"


def test_an_end_says_why_it_is_the_last() -> None:
    (exhausted,) = envelopes(EXHAUSTED)
    assert (exhausted["data"]["reason"], exhausted["data"]["dead_letter"]) == ("attempts", True)
    (discarded,) = envelopes(replace(EXHAUSTED, ends_as="discard"))
    assert "dead_letter" not in discarded["data"]
    reasons = [
        envelopes(event)[-1]["data"]["reason"]
        for event in (CHANGED, replace(FAILED, overtaken=True), DROPPED)
    ]
    assert reasons == ["changed", "overtaken", "overridden"]
    (failed,) = envelopes(replace(FAILED, max_attempts=3))
    assert failed["data"]["max_attempts"] == 3


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("ValueError: a: b", {"type": "ValueError", "message": "a: b"}),
        ("shop.errors.Gone", {"type": "shop.errors.Gone", "message": ""}),
        ("the process is gone", {"message": "the process is gone"}),
        ("timed out after 5 s: no", {"message": "timed out after 5 s: no"}),
        ("", {"message": ""}),
    ],
)
def test_an_error_is_taken_apart(line: str, error: dict[str, str]) -> None:
    assert envelopes(replace(FAILED, error=line))[0]["data"]["error"] == error


def test_the_same_event_has_the_same_name_and_another_one_another() -> None:
    names = [envelope["id"] for event in ALL for envelope in envelopes(event)]
    again = [envelope["id"] for event in ALL for envelope in envelopes(replace(event))]
    assert names == again
    # The failure, its retry and the interruption have two envelopes each.
    assert len({(e["id"], e["type"]) for e in EVERY}) == len(set(names))
    another = replace(FACTS, job=UUID(int=3))
    assert envelopes(STARTED)[0]["id"] != envelopes(replace(STARTED, facts=another))[0]["id"]
    other = replace(FACTS, deployment=UUID(int=1))
    assert envelopes(STARTED)[0]["id"] != envelopes(replace(STARTED, facts=other))[0]["id"]
    later = replace(SKIPPED_ONE, scheduled_time=NOON + timedelta(hours=1))
    assert envelopes(SKIPPED_ONE)[0]["id"] != envelopes(later)[0]["id"]


@pytest.mark.parametrize(
    "event",
    [
        replace(STARTED, facts=None),
        replace(STARTED, facts=replace(FACTS, job=None)),
        replace(COMPLETED, facts=replace(FACTS, scheduled_time=None)),
        events.TaskPreserved(at=NOON, task_name="a", facts=FACTS),
        events.SchedulerStopped(at=NOON),
    ],
)
def test_other_events_have_no_envelope(event: events.Event) -> None:
    assert envelopes(event) == []
