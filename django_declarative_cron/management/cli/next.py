"""``cron next``: the next occurrences of a task or an expression."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from ...core.schedule import Schedule
from ...cron import DIALECTS, describe, next_transitions
from ...formatting import format_civil, format_count, format_instant, format_relative
from .schedule_lookup import FoundSchedule, find_schedule
from .subcommand import Context, Options, Subcommand, add_format, amount, write
from .table import Cell, cells
from .terminal import Terminal

_CHANGES_SHOWN = 4


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", metavar="NAME|EXPRESSION", help='a task, or such as "0 7 * * 1-5"')
    parser.add_argument(
        "--timezone",
        metavar="Z",
        help="of an expression, or in which times of a task are shown; TIME_ZONE unless given",
    )
    parser.add_argument("--dialect", choices=DIALECTS, help="of an expression; posix unless given")
    parser.add_argument("-n", dest="count", type=amount, default=10, help="how many (default: 10)")
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    now = context.clock.now()
    found = find_schedule(options, now)
    instants = list(islice(found.schedule.upcoming(now), options["count"]))
    changes = list(_changes(found.schedule, now, instants[-1])) if instants else []
    write(context, options, Occurrences(found, instants, changes, now))


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of the clock, the offsets around it, and the number of lost occurrences."""

    at: datetime
    before: timedelta
    after: timedelta
    lost: int


def _changes(schedule: Schedule, since: datetime, until: datetime) -> Iterator[ClockChange]:
    lost = {gap.resumes_at: gap.count for gap in schedule.lost_between(since, until)}
    for change in next_transitions(schedule.zone, since, until):
        number = lost.get(change.instant, 0)
        yield ClockChange(change.instant, change.before, change.after, number)


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The next occurrences of a schedule, and the changes of the clock among them."""

    found: FoundSchedule
    instants: list[datetime]
    changes: list[ClockChange]
    now: datetime

    def as_dict(self) -> dict[str, Any]:
        schedule = self.found.schedule
        return {
            "name": self.found.name,
            "cron": schedule.expression.text,
            "dialect": schedule.expression.dialect,
            "timezone": schedule.zone.key,
            "description": describe(schedule.expression),
            "occurrences": [
                {"at": instant, "local": instant.astimezone(schedule.zone).isoformat()}
                for instant in self.instants
            ],
            "clock_changes": [
                {
                    "at": change.at,
                    "utc_offset_before": change.before,
                    "utc_offset_after": change.after,
                    "lost": change.lost,
                }
                for change in self.changes
            ],
            "notes": self.found.notes,
        }

    def render(self, terminal: Terminal) -> None:
        schedule, name = self.found.schedule, self.found.name
        title = "" if name is None else f"{name}: "
        terminal.say(f"{title}{schedule.expression.text}  {schedule.zone.key}")
        terminal.say(f"{describe(schedule.expression)}.")
        for note in self.found.notes:
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
        viewer = self.found.viewer.key
        reader = [] if viewer == self.found.schedule.zone.key else [viewer]
        return list(dict.fromkeys([*reader, "UTC"]))

    def _row(self, instant: datetime, others: list[str]) -> list[Cell]:
        zone = self.found.schedule.zone
        return cells(
            f"{instant.astimezone(zone):%a} {format_instant(instant, zone)}",
            *(format_civil(instant, ZoneInfo(key)) for key in others),
            format_relative(instant, self.now),
        )

    def _change_lines(self) -> Iterator[str]:
        if self.changes:
            yield ""
        for change in self.changes[:_CHANGES_SHOWN]:
            yield _change(self.found.schedule, change)
        if len(self.changes) > _CHANGES_SHOWN:
            more = format_count(len(self.changes) - _CHANGES_SHOWN, "more change")
            yield f"{more} of the clock until then."


def _change(schedule: Schedule, change: ClockChange) -> str:
    before = (change.at + change.before).replace(tzinfo=UTC)
    after = (change.at + change.after).replace(tzinfo=UTC)
    moved = f"At {format_civil(before, UTC)} the clock goes to {format_civil(after, UTC)}"
    if after < before:
        counted = "both count" if schedule.fold == "both" else "only the first counts"
        return f"{moved}: local times between happen twice, {counted}."
    if schedule.gap == "shift":
        return f"{moved}: what falls between runs at its end."
    if change.lost:
        return f"{moved}: {format_count(change.lost, 'occurrence')} between will not run."
    return f"{moved}: local times between do not exist."


NEXT = Subcommand("next", "show when a task or an expression runs next", _arguments, _answer)
