"""``cron next``: the next occurrences of a task or an expression."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import CommandError

from ... import conf
from ...core.declarations.item import Declared
from ...core.declarations.problems import Problem
from ...core.declarations.values import nearest
from ...core.schedule import Schedule
from ...cron import DIALECTS, CronExpression, describe, next_transitions, parse, remarks_on
from ...cron.zones import Transition, in_zone
from ...exceptions import InvalidCronExpressionError
from ...formatting import (
    format_civil,
    format_count,
    format_duration,
    format_instant,
    format_relative,
)
from ...models import ScheduledTask
from ...store.queries import read_schedule, skips_at
from .deployment_scope import tasks_if_any, worded
from .subcommand import Context, Options, Subcommand, add_format, whole, write, wrong_use, zone_of
from .terminal import Cell, Terminal, cells

_CHANGES_SHOWN = 4


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="NAME|EXPRESSION",
        help='name of a task, or an expression such as "0 7 * * 1-5"',
    )
    parser.add_argument(
        "--timezone",
        metavar="Z",
        help="zone of the expression, or of the times shown for a task; default TIME_ZONE",
    )
    parser.add_argument(
        "--dialect", choices=DIALECTS, help="dialect of the expression; default posix"
    )
    parser.add_argument(
        "-n", dest="count", type=whole, default=10, help="number of occurrences (default: 10)"
    )
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    now, viewer = context.clock.now(), zone_of(options["timezone"])
    schedule, name, notes = _found(options, viewer, now)
    instants = list(islice(schedule.upcoming(now), options["count"]))
    changes: list[Transition] = []
    lost: dict[datetime, int] = {}
    if instants:
        changes = list(next_transitions(schedule.zone, now, instants[-1]))
        lost = {gap.resumes_at: gap.count for gap in schedule.lost_between(now, instants[-1])}
    write(
        context, options, Occurrences(schedule, viewer, name, notes, instants, changes, lost, now)
    )


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The next occurrences of a schedule, and the changes of the clock among them."""

    schedule: Schedule
    viewer: ZoneInfo
    name: str | None
    notes: list[str]
    instants: list[datetime]
    changes: list[Transition]
    lost: dict[datetime, int]
    """Number of lost occurrences by the instant of the change."""
    now: datetime

    def as_dict(self) -> dict[str, Any]:
        schedule = self.schedule
        return {
            "name": self.name,
            "cron": schedule.expression.text,
            "dialect": schedule.expression.dialect,
            "timezone": schedule.zone.key,
            "description": describe(schedule.expression),
            "occurrences": [
                {"at": instant, "local": in_zone(instant, schedule.zone).isoformat()}
                for instant in self.instants
            ],
            "clock_changes": [
                {
                    "at": change.instant,
                    "utc_offset_before": change.before,
                    "utc_offset_after": change.after,
                    "lost": self.lost.get(change.instant, 0),
                }
                for change in self.changes
            ],
            "notes": self.notes,
        }

    def render(self, terminal: Terminal) -> None:
        schedule = self.schedule
        title = "" if self.name is None else f"{self.name}: "
        terminal.say(f"{title}{schedule.expression.text}  {schedule.zone.key}")
        terminal.say(f"{describe(schedule.expression)}.")
        for note in self.notes:
            terminal.say(note)
        terminal.say()
        if self.instants:
            others = self._other_zones()
            rows = [self._row(instant, others) for instant in self.instants]
            terminal.table(rows, (schedule.zone.key, *others, "FROM NOW"))
        else:
            terminal.say("It does not run within the next 50 years.")
        for text in self._change_lines():
            terminal.say(text)

    def _other_zones(self) -> list[str]:
        """Return the zones shown in addition to the schedule's: the reader's, and UTC."""
        others = dict.fromkeys([self.viewer.key, "UTC"])
        others.pop(self.schedule.zone.key, None)
        return list(others)

    def _row(self, instant: datetime, others: list[str]) -> list[Cell]:
        zone = self.schedule.zone
        return cells(
            f"{in_zone(instant, zone):%a} {format_instant(instant, zone)}",
            *(format_civil(instant, ZoneInfo(key)) for key in others),
            format_relative(instant, self.now),
        )

    def _change_lines(self) -> Iterator[str]:
        if self.changes:
            yield ""
        for change in self.changes[:_CHANGES_SHOWN]:
            yield self._change_line(change)
        if len(self.changes) > _CHANGES_SHOWN:
            more = format_count(len(self.changes) - _CHANGES_SHOWN, "more change")
            yield f"{more} of the clock until then."

    def _change_line(self, change: Transition) -> str:
        before = (change.instant + change.before).replace(tzinfo=UTC)
        after = (change.instant + change.after).replace(tzinfo=UTC)
        moved = f"At {format_civil(before, UTC)} the clock goes to {format_civil(after, UTC)}"
        if after < before:
            counted = "both count" if self.schedule.fold == "both" else "only the first counts"
            return f"{moved}: local times between happen twice, {counted}."
        if self.schedule.gap == "shift":
            return f"{moved}: what falls between runs at its end."
        if lost := self.lost.get(change.instant):
            return f"{moved}: {format_count(lost, 'occurrence')} between will not run."
        return f"{moved}: local times between do not exist."


# --- the schedule of a task or an expression ------------------------------------


def _found(
    options: Options, viewer: ZoneInfo, now: datetime
) -> tuple[Schedule, str | None, list[str]]:
    """Return a schedule, the name of its task unless it is an expression, and remarks."""
    text = options["what"]
    declared, problems = conf.survey(conf.registrations())
    task = next(iter(tasks_if_any(text)), None)
    schedule = _schedule(text, declared, task)
    if schedule is None:
        _refuse_flawed(text, problems)
        expression = _expression(text, options["dialect"] or "posix", declared)
        notes = [f"Mind that {remark}." for remark in remarks_on(expression)]
        return Schedule(expression, viewer, anchor=now), None, notes
    if options["dialect"] is not None:
        reason = f"--dialect is for expressions: the task {text!r} declares its own."
        raise wrong_use(reason)
    schedule = schedule.anchored(now if task is None else task.registered_at)
    notes = list(_properties(schedule))
    if task is not None:
        notes += _state(schedule, task, viewer, now)
        schedule = schedule.omitting(task.skip_at)
    return schedule, text, notes


def _schedule(name: str, declared: list[Declared], task: ScheduledTask | None) -> Schedule | None:
    for each in declared:
        if each.declaration.name == name:
            return each.declaration.schedule
    if task is None:
        return None
    schedule, damage = read_schedule(task)
    if schedule is None:
        raise CommandError(f"The row of {name!r} is damaged: {damage}")
    return schedule


def _refuse_flawed(name: str, problems: list[Problem]) -> None:
    flaws = [worded(each) for each in problems if each.task == name and each.check.level == "E"]
    if flaws:
        raise wrong_use("\n".join(flaws))


def _expression(text: str, dialect: str, declared: list[Declared]) -> CronExpression:
    try:
        return parse(text, dialect)
    except InvalidCronExpressionError as error:
        if " " in text.strip() or text.startswith("@"):
            raise wrong_use(f"{error.message}{_other_dialect(text, dialect)}") from error
        near = nearest(text, {each.declaration.name for each in declared})
        meant = f"Did you mean {near!r}?" if near else 'An expression is written "0 7 * * *".'
        reason = f"{text!r} is neither the name of a task nor a cron expression."
        raise wrong_use(f"{reason} {meant}") from error


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


NEXT = Subcommand("next", "show when a task or an expression runs next", _arguments, _answer)
