"""The default log of ``runscheduler``: one short line for each run, written at its end."""

from __future__ import annotations

import copy
import logging
from datetime import datetime, tzinfo
from typing import Any

from ...cron.zones import in_zone
from ...formatting import format_clock, format_elapsed

_MOST_STARTS = 10_000
_ENDS = {
    "TaskRunCompleted": "succeeded in",
    "TaskRunFailed": "failed after",
    "TaskRunInterrupted": "was interrupted",
    "TaskRunCancelled": "was cancelled",
}


class RunLineFormatter(logging.Formatter):
    """Words the ends of runs; other records have the event and its fields.

    It is a filter too, which drops the starts of runs and keeps their times for the ends.
    """

    def __init__(self, zone: tzinfo) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")
        self._zone = zone
        self._starts: dict[int, str] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        values = vars(record)
        if values.get("event") == "TaskRunStarted" and values.get("run") is not None:
            while len(self._starts) >= _MOST_STARTS:
                del self._starts[next(iter(self._starts))]
            self._starts[values["run"]] = self._start(values)
            return False
        return values.get("event") != "TaskRetryStarted"

    def format(self, record: logging.LogRecord) -> str:
        values = vars(record)
        if values.get("event") not in _ENDS or "taskName" not in values:
            return super().format(record)
        worded = copy.copy(record)
        worded.msg, worded.args = "%s", (self._end(values),)
        return super().format(worded)

    def _start(self, values: dict[str, Any]) -> str:
        if values["reason"] == "manual":
            return "manual"
        due = datetime.fromisoformat(values["scheduledTime"])
        text = f"due {format_clock(in_zone(due, self._zone), seconds=True)}"
        if values["attempt"] > 1:
            return f"{text}, attempt {values['attempt']}"
        late = datetime.fromisoformat(values["actualTime"]) - due
        return f"{text}, +{format_elapsed(late)}"

    def _end(self, values: dict[str, Any]) -> str:
        text = f"{values['taskName']} {_ENDS[values['event']]}"
        if values.get("duration") is not None:
            text += f" {format_elapsed(values['duration'])}"
        if values.get("error"):
            text += f": {values['error']}"
        details = [self._starts.pop(values.get("run") or 0, "")]
        if values.get("nextRetryAt"):
            at = in_zone(datetime.fromisoformat(values["nextRetryAt"]), self._zone)
            details.append(f"retry at {format_clock(at, seconds=True)}")
        shown = "; ".join(filter(None, details))
        return f"{text} ({shown})" if shown else text
