"""The lines that ``runscheduler`` prints before the first run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import Error as DatabaseError
from django.db import connections
from django.db.models import Min

from ... import conf
from ...formatting import format_count, format_instant
from ...models import ScheduledTask
from ...runtime.scheduler import Scheduler
from ...store import database
from ...store.status import next_start_at


def lines(
    scheduler: Scheduler, options: conf.Options, using: str, port: int | None
) -> Iterator[str]:
    """Yield the startup banner."""
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
