"""Events as lines for a terminal."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.test import SimpleTestCase

from django_declarative_cron import signals
from django_declarative_cron.core import events

from ..logs import EventFormatter
from .base import NOW

SOON = NOW + timedelta(seconds=25)
STARTED: dict[str, Any] = {
    "at": NOW,
    "task_name": "a",
    "scheduled_time": NOW - timedelta(seconds=1),
}

LINES = [
    (
        events.TaskAdded(at=NOW, task_name="a", cron_expression="* * * * *", retry_delay_ms=0),
        "a                new, * * * * *",
    ),
    (
        events.TaskRunStarted(**STARTED, actual_time=NOW),
        "a                started (due), 1.00 s after its time",
    ),
    (
        events.TaskRunStarted(**STARTED, actual_time=SOON, is_retry=True, attempt=2),
        "a                started again, attempt 2",
    ),
    (
        events.TaskRunCompleted(at=NOW, task_name="a", duration=0.5),
        "a                succeeded in 0.50 s",
    ),
    (
        events.TaskRunFailed(at=NOW, task_name="a", duration=1, error="E: no", next_retry_at=SOON),
        "a                FAILED: E: no Next try at {soon}.",
    ),
    (
        events.TaskRunFailed(at=NOW, task_name="a", duration=1, error="E: no"),
        "a                FAILED: E: no",
    ),
    (
        events.TaskRetryStarted(at=NOW, task_name="a", retry_count=2),
        "a                is tried again, retry 2",
    ),
    (
        events.TaskRetryPreempted(at=NOW, task_name="a", reason="due"),
        "a                needs no retry: its next time has come",
    ),
    (events.SchedulerStopped(at=NOW), "SchedulerStopped at=2026-03-30T04:30:00Z"),
]


class Lines(SimpleTestCase):
    def test_an_event_is_one_line_that_begins_with_the_time(self) -> None:
        for event, line in LINES:
            with self.subTest(line), self.assertLogs("django_declarative_cron", "DEBUG") as caught:
                signals.publish([event])
            (record,) = caught.records
            text = EventFormatter().format(record)
            time, source, words = text.split(" ", 2)
            self.assertEqual(source, "scheduler")
            self.assertEqual(words, line.format(soon=f"{SOON.astimezone():%H:%M:%S}"))
            self.assertTrue(datetime.strptime(time, "%H:%M:%S"))

    def test_other_lines_are_left_as_they_are(self) -> None:
        record = logging.makeLogRecord({"msg": "A pass of %s failed", "args": ("it",)})
        self.assertTrue(EventFormatter().format(record).endswith(" scheduler A pass of it failed"))
