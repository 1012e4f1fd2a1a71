"""What ``cron next`` is asked about: a task by its name, or an expression."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from django.core.management.base import CommandError

from ... import conf
from ...core.declarations.item import Declared
from ...core.declarations.problems import Problem
from ...core.declarations.values import flaw_of_text, nearest
from ...core.schedule import Schedule
from ...cron import CronExpression, parse, remarks_on
from ...exceptions import InvalidCronExpressionError
from ...formatting import format_duration, format_instant
from ...models import ScheduledTask
from ...store.queries import read_schedule, skips_at
from .instants import zone_of
from .scope import shown, tasks_if_any
from .subcommand import Options


@dataclass(frozen=True, slots=True)
class Asked:
    """A schedule somebody asked about.

    Args:
        schedule: its expression and zone.
        name: of the task, ``None`` for an expression.
        viewer: the zone of the reader.
        notes: what else is to be known of it.
    """

    schedule: Schedule
    viewer: ZoneInfo
    name: str | None = None
    notes: list[str] = field(default_factory=list)


def resolve(options: Options, now: datetime) -> Asked:
    """Find what was asked about: what is declared, then what is registered, then an expression.

    Raises:
        CommandError: it is none of them, with exit code 2 and what to write instead.
    """
    what, viewer = options["what"], zone_of(options["timezone"])
    declared, problems = conf.survey(conf.registrations())
    task = _task(what)
    schedule = _schedule(what, declared, task)
    if schedule is None:
        _refuse_flawed(what, problems)
        expression = _expression(what, options["dialect"] or "posix", declared)
        return Asked(Schedule(expression, viewer, anchor=now), viewer, notes=_remarks(expression))
    _refuse_for_tasks(what, options)
    schedule = schedule.anchored(now if task is None else task.registered_at)
    notes = list(_manner(schedule))
    if task is not None:
        notes += _notes(schedule, task, viewer, now)
        schedule = schedule.omitting(task.skip_at)
    return Asked(schedule, viewer, what, notes)


def _task(name: str) -> ScheduledTask | None:
    """Look for a row; an answer about an expression needs no database."""
    if flaw_of_text(name) is not None:
        return None
    return next(iter(tasks_if_any(name)), None)


def _schedule(name: str, declared: list[Declared], task: ScheduledTask | None) -> Schedule | None:
    for each in declared:
        if each.declaration.name == name:
            return each.declaration.schedule
    if task is None:
        return None
    schedule, damage = read_schedule(task)
    if schedule is None:
        raise CommandError(f"The row of {name!r} is damaged: {damage}", returncode=1)
    return schedule


def _refuse_for_tasks(name: str, options: Options) -> None:
    if options["dialect"] is not None:
        raise CommandError(
            f"--dialect is for expressions: the task {name!r} declares its own.", returncode=2
        )


def _refuse_flawed(name: str, problems: list[Problem]) -> None:
    flaws = [shown(each) for each in problems if each.task == name and each.check.level == "E"]
    if flaws:
        raise CommandError("\n".join(flaws), returncode=2)


def _expression(text: str, dialect: str, declared: list[Declared]) -> CronExpression:
    try:
        return parse(text, dialect)
    except InvalidCronExpressionError as error:
        if " " in text.strip() or text.startswith("@"):
            told = f"{error.message}{_other_dialect(text, dialect)}"
            raise CommandError(told, returncode=2) from error
        near = nearest(text, {each.declaration.name for each in declared})
        meant = f"Did you mean {near!r}?" if near else 'An expression is written "0 7 * * *".'
        reason = f"{text!r} is neither the name of a task nor a cron expression."
        raise CommandError(f"{reason} {meant}", returncode=2) from error


def _other_dialect(text: str, dialect: str) -> str:
    """Say that dicts of SCHEDULED_TASKS may have an expression that tuples may not."""
    with suppress(InvalidCronExpressionError):
        if dialect != "ojs":
            parse(text, "ojs")
            return "\nEntries that are dicts take it as it is; --dialect ojs shows when it runs."
    return ""


def _remarks(expression: CronExpression) -> list[str]:
    return [f"Mind that {remark}." for remark in remarks_on(expression)]


def _manner(schedule: Schedule) -> Iterator[str]:
    if schedule.offset:
        yield f"Each is later by {format_duration(schedule.offset.total_seconds())}: it is spread."
    if schedule.exclusion is not None:
        yield "Days that its calendars exclude are left out."


def _notes(schedule: Schedule, task: ScheduledTask, viewer: ZoneInfo, now: datetime) -> list[str]:
    notes = []
    if read_schedule(task)[0] != schedule:
        notes.append(
            f"The scheduler still runs it by {task.cron!r} in {task.timezone}, "
            "until `python manage.py runscheduler` starts anew."
        )
    if task.paused_since is not None:
        notes.append(f"It is paused {_end(task.paused_until, viewer)}.")
    skips = skips_at(task, now)
    if skips is not None:
        notes.append(f"Its run of {format_instant(skips, viewer)} is skipped.")
    return notes


def _end(until: datetime | None, zone: ZoneInfo) -> str:
    return "until it is resumed" if until is None else f"until {format_instant(until, zone)}"
