"""The scheduler's events as lines for a terminal; the fields are those of each record."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any


class EventFormatter(logging.Formatter):
    """Word what happens to a task in one short line, and leave other events as they are."""

    def __init__(self) -> None:
        super().__init__("{asctime} scheduler {message}", datefmt="%H:%M:%S", style="{")

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = worded(vars(record)) or record.message
        return super().formatMessage(record)


def worded(fields: dict[str, Any]) -> str | None:
    """Word an event, or give ``None`` for one without special words.

    Args:
        fields: the attributes of its log record.
    """
    match fields.get("event"):
        case "TaskAdded":
            words = f"new, {fields['cronExpression']}"
        case "TaskRunStarted":
            words = _started(fields)
        case "TaskRunCompleted":
            words = f"succeeded in {fields['duration']:.2f} s"
        case "TaskRunFailed":
            again = fields["nextRetryAt"]
            words = f"FAILED: {fields['error']}"
            if again is not None:
                words += f" Next try at {_instant(again).astimezone():%H:%M:%S}."
        case "TaskRetryPreempted":
            words = "needs no retry: its next time has come"
        case "TaskRetryStarted":
            words = f"is tried again, retry {fields['retryCount']}"
        case _:
            return None
    return f"{fields['taskName']:16} {words}"


def _started(fields: dict[str, Any]) -> str:
    if fields["isRetry"]:
        return f"started again, attempt {fields['attempt']}"
    late = _instant(fields["actualTime"]) - _instant(fields["scheduledTime"])
    return f"started ({fields['reason']}), {late.total_seconds():.2f} s after its time"


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
