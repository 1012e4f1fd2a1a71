"""``cron health``: whether a scheduler sends heartbeats, for people, monitors and containers."""

from __future__ import annotations

import socket
from argparse import ArgumentParser
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError
from django.db import Error as DatabaseError

from ... import conf
from ...formatting import format_count, format_duration
from ...models import SchedulerInstance
from ...store import database
from ...store.outbox import Backlog, undelivered
from ...store.status import Attendance, attendance, gave_up, overdue_tasks, patience
from .deployment_scope import require_tables
from .subcommand import Context, Options, Subcommand, add_format, seconds


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--max-age",
        type=seconds,
        metavar="SECONDS",
        help="maximum age of a heartbeat (default: 30, or LEASE if that is longer)",
    )
    parser.add_argument("--local", action="store_true", help="only a scheduler on this host counts")
    parser.add_argument("--pid", type=int, metavar="N", help="only that process id counts")
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    report = _report(context, options)
    if options["format"] == "json":
        context.terminal.data(report.as_dict())
    if not report.is_healthy:
        raise CommandError(report.sentence)
    if options["format"] != "json":
        context.terminal.say(report.sentence, "SUCCESS")


def _report(context: Context, options: Options) -> HealthReport:
    # Migrations are not checked first, because that takes longer than all the rest.
    using, deployment, clock = database.alias(), conf.options().DEPLOYMENT, context.clock
    try:
        found = attendance(using, deployment, clock.database_time())
        overdue = overdue_tasks(using, deployment, clock.now()).count()
    except DatabaseError:
        require_tables(using)
        raise
    given, pid = options["max_age"], options["pid"]
    max_age = patience(conf.options().LEASE) if given is None else timedelta(seconds=given)
    host = socket.gethostname() if options["local"] else None
    place = "" if host is None else " on this host"
    place += "" if pid is None else f" as process {pid}"
    candidates = [
        each
        for each in (() if found is None else found.present)
        if host in (None, each.host) and pid in (None, each.pid)
    ]
    alive = [each for each in candidates if found is not None and found.age(each) <= max_age]
    events = undelivered(using, deployment, clock.database_time())
    late = None if place else overdue
    return HealthReport(deployment, found, candidates, alive, late, place, max_age, events)


@dataclass(frozen=True, slots=True)
class HealthReport:
    """The schedulers that have sent a heartbeat, of a host and a process if these are given."""

    deployment: str
    found: Attendance | None
    candidates: list[SchedulerInstance]
    alive: list[SchedulerInstance]
    overdue: int | None
    """Number of tasks, ``None`` where a host or a process is given."""
    place: str
    max_age: timedelta
    events: Backlog | None

    @property
    def is_healthy(self) -> bool:
        return bool(self.alive) and not self.overdue

    def as_dict(self) -> dict[str, Any]:
        found = self.found
        return {
            "healthy": self.is_healthy,
            "answer": self.sentence,
            "now": None if found is None else found.now,
            "deployment": self.deployment,
            "max_age": self.max_age,
            "overdue": None if found is None else self.overdue,
            "events": None if self.events is None else _backlog_as_dict(self.events),
            "schedulers": []
            if found is None
            else [_instance_as_dict(found, each) for each in self.candidates],
        }

    @property
    def sentence(self) -> str:
        if self.found is None or not self.alive:
            return f"Unhealthy: no scheduler of deployment {self._silence()}"
        names = ", ".join(_described(self.found, each) for each in self.alive)
        here = f"{format_count(len(self.alive), 'scheduler')}{self.place}: {names}"
        if self.overdue:
            return f"Unhealthy: {format_count(self.overdue, 'task')} overdue, despite {here}."
        return f"Healthy: {here}.{_undelivered(self.events)}"

    def _silence(self) -> str:
        name, found, candidates = repr(self.deployment), self.found, self.candidates
        if found is None or found.last is None:
            return f"{name} has ever sent a heartbeat."
        late = f" {format_count(self.overdue, 'task')} overdue." if self.overdue else ""
        last = ""
        if candidates or not self.place:
            last = _last_heard(found, candidates[0] if candidates else found.last)
        return (
            f"{name} is running{self.place}: "
            f"no heartbeat in the last {format_duration(self.max_age)}{last}.{late}"
        )


def _described(found: Attendance, each: SchedulerInstance) -> str:
    age = format_duration(found.age(each))
    return f"{each} ({_role(found, each)}, last heartbeat {age} ago)"


def _role(found: Attendance, each: SchedulerInstance) -> str:
    if each.pk == found.state.leader_id:
        return "leader"
    if each.stop_requested_at is not None:
        return "stopping"
    return "standby" if each.digest == found.state.digest else "outdated registration set"


def _last_heard(found: Attendance, last: SchedulerInstance) -> str:
    if gave_up(last):
        return f"; the last was of {last}, which left with unfinished runs"
    stopped = "" if last.stopped_at is None else ", and it has stopped"
    return f"; the last was of {last}, {format_duration(found.age(last))} ago{stopped}"


def _undelivered(events: Backlog | None) -> str:
    """Return the events that their receiver rejects, empty for events in delivery."""
    if events is None:
        return ""
    sentences = []
    if events.refused and events.age is not None:
        waiting = format_count(events.waiting, "event")
        age = format_duration(events.age)
        sentences.append(f"{waiting} undelivered for up to {age} ({events.error})")
    if events.dead_lettered:
        sentences.append(f"{format_count(events.dead_lettered, 'event')} dead-lettered")
    return "".join(f" {each}." for each in sentences)


def _instance_as_dict(found: Attendance, each: SchedulerInstance) -> dict[str, Any]:
    return {
        "id": each.pk,
        "host": each.host,
        "pid": each.pid,
        "release": each.release,
        "leads": each.pk == found.state.leader_id,
        "started_at": each.started_at,
        "heartbeat_at": each.heartbeat_at,
        "age": round(found.age(each).total_seconds(), 3),
        "stop_requested_at": each.stop_requested_at,
    }


def _backlog_as_dict(events: Backlog) -> dict[str, Any]:
    return {
        "waiting": events.waiting,
        "refused": events.refused,
        "dead_lettered": events.dead_lettered,
        "oldest": events.oldest,
        "age": None if events.age is None else round(events.age.total_seconds(), 3),
        "error": events.error,
    }


HEALTH = Subcommand("health", "check whether a scheduler is running", _arguments, _answer)
