"""Find the schedule that ``cron next`` is about: of a task, or of an expression."""

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
from .datetimes import zone_of
from .deployment_scope import tasks_if_any, worded
from .subcommand import Options


@dataclass(frozen=True, slots=True)
class FoundSchedule:
    """A schedule, the zone of the reader, the name of the task if any, and remarks."""

    schedule: Schedule
    viewer: ZoneInfo
    name: str | None = None
    notes: list[str] = field(default_factory=list)


def find_schedule(options: Options, now: datetime) -> FoundSchedule:
    """Return the schedule of a declared task, of a registered task, or of an expression.

    Raises:
        CommandError: the text matches none of them, with exit code 2 and a suggestion.
    """
    text, viewer = options["what"], zone_of(options["timezone"])
    declared, problems = conf.survey(conf.registrations())
    task = _task(text)
    schedule = _schedule(text, declared, task)
    if schedule is None:
        _refuse_flawed(text, problems)
        expression = _expression(text, options["dialect"] or "posix", declared)
        notes = [f"Mind that {remark}." for remark in remarks_on(expression)]
        return FoundSchedule(Schedule(expression, viewer, anchor=now), viewer, notes=notes)
    if options["dialect"] is not None:
        reason = f"--dialect is for expressions: the task {text!r} declares its own."
        raise CommandError(reason, returncode=2)
    schedule = schedule.anchored(now if task is None else task.registered_at)
    notes = list(_properties(schedule))
    if task is not None:
        notes += _state(schedule, task, viewer, now)
        schedule = schedule.omitting(task.skip_at)
    return FoundSchedule(schedule, viewer, text, notes)


def _task(name: str) -> ScheduledTask | None:
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


def _refuse_flawed(name: str, problems: list[Problem]) -> None:
    flaws = [worded(each) for each in problems if each.task == name and each.check.level == "E"]
    if flaws:
        raise CommandError("\n".join(flaws), returncode=2)


def _expression(text: str, dialect: str, declared: list[Declared]) -> CronExpression:
    try:
        return parse(text, dialect)
    except InvalidCronExpressionError as error:
        if " " in text.strip() or text.startswith("@"):
            message = f"{error.message}{_other_dialect(text, dialect)}"
            raise CommandError(message, returncode=2) from error
        near = nearest(text, {each.declaration.name for each in declared})
        meant = f"Did you mean {near!r}?" if near else 'An expression is written "0 7 * * *".'
        reason = f"{text!r} is neither the name of a task nor a cron expression."
        raise CommandError(f"{reason} {meant}", returncode=2) from error


def _other_dialect(text: str, dialect: str) -> str:
    """Return a hint for expressions that dict entries accept and tuples do not."""
    with suppress(InvalidCronExpressionError):
        if dialect != "ojs":
            parse(text, "ojs")
            return "\nEntries that are dicts take it as it is; --dialect ojs shows when it runs."
    return ""


def _properties(schedule: Schedule) -> Iterator[str]:
    if schedule.offset:
        yield f"Each is later by {format_duration(schedule.offset)}: it is spread."
    if schedule.exclusion is not None:
        yield "Days that its calendars exclude are left out."


def _state(schedule: Schedule, task: ScheduledTask, viewer: ZoneInfo, now: datetime) -> list[str]:
    notes = []
    if read_schedule(task)[0] != schedule:
        notes.append(
            f"The scheduler still runs it by {task.cron!r} in {task.timezone}, "
            "until `python manage.py runscheduler` starts anew."
        )
    if task.paused_since is not None:
        until = task.paused_until
        end = "until it is resumed" if until is None else f"until {format_instant(until, viewer)}"
        notes.append(f"It is paused {end}.")
    skips = skips_at(task, now)
    if skips is not None:
        notes.append(f"Its run of {format_instant(skips, viewer)} is skipped.")
    return notes
