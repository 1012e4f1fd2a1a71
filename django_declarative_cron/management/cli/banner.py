"""The six lines with which a scheduler says that it is at work."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import connections

from ... import conf
from ...runtime.scheduler import Scheduler
from ...signals import safe
from .words import count, local


def lines(
    scheduler: Scheduler, options: conf.Options, using: str, port: int | None
) -> Iterator[str]:
    """Give the lines, the last of which is always the same.

    Args:
        scheduler: that has initialised.
        options: of this process.
        using: database alias.
        port: at which probes are answered, ``None`` where none are.
    """
    vendor = connections[using].vendor
    probes = "none" if port is None else f"/live and /ready on port {port}"
    yield f"Scheduler {scheduler.id} of deployment {options.DEPLOYMENT!r}:"
    yield f"  database  {vendor} {using!r}, {scheduler.standing.value}"
    yield f"  tasks     {_tasks(scheduler, options)}"
    yield (
        f"  runs      {options.WORKERS} workers, lease {_seconds(options.LEASE)}, "
        f"grace {_seconds(options.GRACE)}"
    )
    yield f"  probes    {probes}"
    yield "SIGTERM or Ctrl-C stops it."


def _tasks(scheduler: Scheduler, options: conf.Options) -> str:
    release = f", release {safe(options.RELEASE)}" if options.RELEASE else ""
    following = _following(scheduler)
    tail = "" if following is None else f", the next at {local(following, conf.project_zone())}"
    return f"{count(len(scheduler.declarations), 'task')}{release}{tail}"


def _following(scheduler: Scheduler) -> datetime | None:
    now = scheduler.clock.now()
    schedules = (each.schedule.anchored(now) for each in scheduler.declarations if each.enabled)
    coming = (schedule.next_after(now) for schedule in schedules)
    return min((each for each in coming if each is not None), default=None)


def _seconds(length: timedelta) -> str:
    return f"{length.total_seconds():g} s"
