"""Output of ``runscheduler``: lines before the first run, and one log line for each run."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from typing import Any

from django.db import Error as DatabaseError
from django.db import connections
from django.db.models import Min

from ... import conf
from ...cron.zones import in_zone
from ...formatting import format_clock, format_count, format_elapsed, format_instant
from ...models import ScheduledTask
from ...runtime.scheduler import Scheduler
from ...store import database
from ...store.status import next_start_at


def banner(
    scheduler: Scheduler, options: conf.Options, using: str, port: int | None
) -> Iterator[str]:
    """Yield the lines that are printed before the first run."""
    vendor = connections[using].vendor
    probes = "none" if port is None else f"/live and /ready on port {port}"
    yield f"Scheduler {scheduler.id} of deployment {options.DEPLOYMENT!r}:"
    yield f"  database  {vendor} {using!r}, {scheduler.role.value}"
    yield f"  tasks     {_tasks(scheduler, options, using)}"
    yield (
        f"  runs      {options.WORKERS} workers, lease {_seconds(options.LEASE)}, "
        f"grace {_seconds(options.GRACE)}"
    )
    yield f"  probes    {probes}"
    yield "SIGTERM or Ctrl-C stops it."


def _tasks(scheduler: Scheduler, options: conf.Options, using: str) -> str:
    release = f", release {options.RELEASE}" if options.RELEASE else ""
    following = _following(options.DEPLOYMENT, using)
    tail = ""
    if following is not None:
        tail = f", the next at {format_instant(following, conf.project_zone())}"
    return f"{format_count(len(scheduler.declarations), 'task')}{release}{tail}"


def _following(deployment: str, using: str) -> datetime | None:
    # From the rows, which know of pauses and need no calculation for each of many tasks.
    tasks = ScheduledTask.objects.using(using).filter(scheduler__deployment=deployment)
    try:
        with database.direct(using):
            first: datetime | None = tasks.aggregate(first=Min(next_start_at()))["first"]
    except DatabaseError:
        return None  # The loop logs the error, and goes on.
    return first


def _seconds(length: timedelta) -> str:
    return f"{length.total_seconds():g} s"


# --- the log of runs ------------------------------------------------------------

_MOST_STARTS = 10_000
_ENDS = {
    "TaskRunCompleted": "succeeded in",
    "TaskRunFailed": "failed after",
    "TaskRunInterrupted": "was interrupted",
    "TaskRunCancelled": "was cancelled",
}
_KEPT = ("reason", "attempt", "scheduledTime", "actualTime")


class RunLineFormatter(logging.Formatter):
    """Words the ends of runs; other records have the event and its fields.

    It is a filter too, which drops the starts of runs and keeps their values for the ends.
    """

    def __init__(self, zone: tzinfo) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")
        self._zone = zone
        self._starts: dict[int, dict[str, Any]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        values = vars(record)
        if values.get("event") == "TaskRunStarted" and values.get("run") is not None:
            while len(self._starts) >= _MOST_STARTS:
                del self._starts[next(iter(self._starts))]
            self._starts[values["run"]] = {key: values[key] for key in _KEPT}
            return False
        return values.get("event") != "TaskRetryStarted"

    def format(self, record: logging.LogRecord) -> str:
        values = vars(record)
        if values.get("event") not in _ENDS or "taskName" not in values:
            return super().format(record)
        worded = copy.copy(record)
        worded.msg, worded.args = "%s", (self._line(values),)
        return super().format(worded)

    def _line(self, end: dict[str, Any]) -> str:
        text = f"{end['taskName']} {_ENDS[end['event']]}"
        if end.get("duration") is not None:
            text += f" {format_elapsed(end['duration'])}"
        if end.get("error"):
            text += f": {end['error']}"
        ended, details = datetime.fromisoformat(end["at"]), []
        if start := self._starts.pop(end.get("run") or 0, None):
            details.append(self._start(start, ended))
        if end.get("nextRetryAt"):
            retry = datetime.fromisoformat(end["nextRetryAt"])
            details.append(f"retry at {self._clock(retry, ended)}")
        return f"{text} ({'; '.join(details)})" if details else text

    def _start(self, start: dict[str, Any], ended: datetime) -> str:
        if start["reason"] == "manual":
            return "manual"
        due, started = map(datetime.fromisoformat, (start["scheduledTime"], start["actualTime"]))
        text = f"due {self._clock(due, ended)}"
        if start["attempt"] > 1:
            return f"{text}, attempt {start['attempt']}"
        return f"{text}, +{format_elapsed(started - due)}"

    def _clock(self, instant: datetime, ended: datetime) -> str:
        """Return the time of day of an instant, with its date where a run ended on another."""
        local = in_zone(instant, self._zone)
        clock = format_clock(local, seconds=True)
        is_same_day = local.date() == in_zone(ended, self._zone).date()
        return clock if is_same_day else f"{local.date()} {clock}"
