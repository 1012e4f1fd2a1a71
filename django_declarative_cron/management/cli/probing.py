"""``cron health``: has a scheduler checked in? For people, monitors and ``HEALTHCHECK``."""

from __future__ import annotations

import socket
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError
from django.db import Error as DatabaseError

from ... import conf
from ...formatting import format_count, format_duration, iso8601
from ...models import SchedulerInstance
from ...store import database
from ...store.metrics_queries import Backlog, undelivered
from ...store.status import Attendance, attendance, gave_up, patience
from ..ready import require_tables
from .subcommand import Context, Options, Subcommand, add_format

_LONGEST = 1_000_000_000


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--max-age",
        type=_seconds,
        metavar="SECONDS",
        help="how old a heartbeat may be; 30, or LEASE where that is longer",
    )
    parser.add_argument(
        "--local",
        action="store_true",
        help="only a scheduler on this host counts",
    )
    parser.add_argument("--pid", type=int, metavar="N", help="only that process id counts")
    add_format(parser)


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (value := float(text)) <= _LONGEST:
            return value
    raise ArgumentTypeError(f"{text!r} is no number of seconds from 0 to {_LONGEST:,}")


def _answer(context: Context, options: Options) -> None:
    # The migrations are not looked at first: that would take longer than all the rest.
    using, deployment = database.alias(), conf.options().DEPLOYMENT
    clock = context.clock
    try:
        found = attendance(using, deployment, clock.now(), clock.database_time())
    except DatabaseError:
        require_tables(using)
        raise
    judged = _Judged(found, deployment, options, undelivered(using, deployment, clock))
    if options["format"] == "json":
        context.terminal.data(judged.record())
    elif judged.is_fine:
        context.terminal.say(judged.line, "SUCCESS")
    if not judged.is_fine:
        raise CommandError(judged.line, returncode=1)


class _Judged:
    """What was found, and whether that is healthy."""

    def __init__(
        self,
        found: Attendance | None,
        deployment: str,
        options: Options,
        events: Backlog | None,
    ) -> None:
        self._found, self._events = found, events
        self._deployment = deployment
        self._is_narrowed = options["local"] or options["pid"] is not None
        self._where = _where(options)
        given = options["max_age"]
        self._max_age = (
            patience(conf.options().LEASE) if given is None else timedelta(seconds=given)
        )
        self._asked = () if found is None else _asked(found.present, options)
        heard = [] if found is None else found.heard(self._max_age)
        self._heard = [each for each in heard if each in self._asked]
        self._overdue = 0 if found is None or self._is_narrowed else found.overdue

    @property
    def is_fine(self) -> bool:
        return bool(self._heard) and not self._overdue

    @property
    def line(self) -> str:
        if not self._heard:
            return f"Unhealthy: no scheduler of deployment {self._silence()}"
        here = f"{format_count(len(self._heard), 'scheduler')}{self._where}: {self._names()}"
        if self._overdue:
            return f"Unhealthy: {format_count(self._overdue, 'task')} overdue, in spite of {here}."
        return f"Healthy: {here}.{_held_up(self._events)}"

    def record(self) -> dict[str, Any]:
        found = self._found
        return {
            "healthy": self.is_fine,
            "answer": self.line,
            "now": None if found is None else iso8601(found.now),
            "deployment": self._deployment,
            "max_age": self._max_age.total_seconds(),
            "overdue": None if found is None or self._is_narrowed else found.overdue,
            "events": None if self._events is None else _as_record(self._events),
            "schedulers": [] if found is None else [self._one(found, e) for e in self._asked],
        }

    def _one(self, found: Attendance, each: SchedulerInstance) -> dict[str, Any]:
        return {
            "id": str(each.pk),
            "host": each.host,
            "pid": each.pid,
            "release": each.release,
            "leads": each.pk == found.leader,
            "started_at": iso8601(each.started_at),
            "heartbeat_at": iso8601(each.heartbeat_at),
            "age": round(found.age(each).total_seconds(), 3),
            "stop_requested_at": iso8601(each.stop_requested_at),
        }

    def _silence(self) -> str:
        name, found = repr(self._deployment), self._found
        if found is None or found.last is None:
            return f"{name} has ever checked in."
        late = f" {format_count(self._overdue, 'task')} overdue." if self._overdue else ""
        last = self._asked[0] if self._asked else found.last
        heard = "" if self._is_narrowed and not self._asked else _last_heard(found, last)
        return (
            f"{name} is at work{self._where}: "
            f"none was heard of in the last {format_duration(self._max_age)}{heard}.{late}"
        )

    def _names(self) -> str:
        assert self._found is not None
        return ", ".join(
            f"{each} {_role(self._found, each)}, "
            f"heard of {format_duration(self._found.age(each))} ago"
            for each in self._heard
        )


def _role(found: Attendance, each: SchedulerInstance) -> str:
    if each.pk == found.leader:
        return "leads"
    if each.stop_requested_at is not None:
        return "is stopping"
    return "stands by" if each.digest == found.digest else "has an outdated registration set"


def _held_up(events: Backlog | None) -> str:
    """Return what keeps events from the receiver; nothing where they are merely on their way."""
    if events is None:
        return ""
    words = []
    if events.refused and events.age is not None:
        waiting = format_count(events.waiting, "event")
        waits = f"{waiting} undelivered for up to {format_duration(events.age)}"
        words.append(f"{waits} ({events.error})")
    if events.dead_lettered:
        words.append(f"{format_count(events.dead_lettered, 'event')} dead-lettered")
    return "".join(f" {each}." for each in words)


def _as_record(events: Backlog) -> dict[str, Any]:
    return {
        "waiting": events.waiting,
        "refused": events.refused,
        "dead_lettered": events.dead_lettered,
        "oldest": iso8601(events.oldest),
        "age": None if events.age is None else round(events.age.total_seconds(), 3),
        "error": events.error,
    }


def _asked(present: Sequence[SchedulerInstance], options: Options) -> tuple[SchedulerInstance, ...]:
    host, pid = socket.gethostname(), options["pid"]
    return tuple(
        each
        for each in present
        if (not options["local"] or each.host == host) and (pid is None or each.pid == pid)
    )


def _where(options: Options) -> str:
    words = " on this host" if options["local"] else ""
    return words + (f" as process {options['pid']}" if options["pid"] is not None else "")


def _last_heard(found: Attendance, last: SchedulerInstance) -> str:
    if gave_up(last):
        return f"; the last was {last}, which left with runs in flight"
    stopped = "" if last.stopped_at is None else ", and it has stopped"
    return f"; the last was {last}, {format_duration(found.age(last))} ago{stopped}"


HEALTH = Subcommand(
    "health",
    "ask the database whether a scheduler has checked in",
    _arguments,
    _answer,
)
