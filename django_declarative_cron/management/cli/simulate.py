"""``cron simulate``: the starts of declared and posted tasks in a span of time."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from ... import conf
from ...core.schedule import Schedule
from ...formatting import format_civil, format_count, format_instant
from ...models import Origin
from ...store.queries import read_schedule
from .deployment_scope import declared, tasks_if_any
from .subcommand import (
    Context,
    Options,
    Progress,
    Subcommand,
    add_format,
    read_instant,
    whole,
    write,
    wrong_use,
)
from .terminal import Cell, Terminal, cells

_HEADER = ("TASK", "STARTS", "FIRST", "LAST", "SCHEDULE")
_LONGEST = timedelta(days=3660)
_TICK = timedelta(microseconds=1)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="begin",
        metavar="ISO",
        help="start of the time span, in TIME_ZONE; default now",
    )
    parser.add_argument(
        "--to", dest="end", metavar="ISO", help="end of the time span; default a day later"
    )
    parser.add_argument("-n", dest="count", type=whole, help="list this many starts in order")
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    begin, end = _span(context, options)
    lines = list(_lines(context, begin, end))
    context.terminal.progress()
    starts = list(islice(_starts(lines, begin, end), options["count"] or 0))
    write(context, options, Simulated(begin, end, lines, starts))


def _span(context: Context, options: Options) -> tuple[datetime, datetime]:
    given = options["begin"]
    begin = context.clock.now() if given is None else read_instant("--from", given)
    given = options["end"]
    end = begin + timedelta(days=1) if given is None else read_instant("--to", given)
    if end <= begin:
        raise wrong_use("--to must lie behind --from.")
    if end - begin > _LONGEST:
        raise wrong_use("At most ten years can be simulated at once.")
    return begin, end


@dataclass(frozen=True, slots=True)
class Line:
    """The starts of one task; ``@every`` counts from its registration if that is known."""

    name: str
    origin: str
    schedule: Schedule
    runs: int
    first: datetime | None
    last: datetime | None
    lost: int
    """Number of occurrences in gaps of the clock."""


def _planned(context: Context, begin: datetime) -> Iterator[tuple[str, str, Schedule]]:
    """Yield the enabled tasks of the settings, and those registered over HTTP."""
    known = tasks_if_any()
    anchors = {task.name: task.registered_at for task in known if task.registered_at <= begin}
    for each in declared():
        if each.enabled:
            anchor = anchors.get(each.name, begin)
            yield each.name, str(Origin.SETTINGS), each.schedule.anchored(anchor)
    for task in known:
        if task.origin != Origin.HTTP or not task.enabled:
            continue
        name, (schedule, damage) = task.name or "", read_schedule(task)
        if schedule is None:
            context.terminal.warn(f"{name!r} is left out, as its row is damaged: {damage}")
        else:
            yield name, str(Origin.HTTP), schedule


def _lines(context: Context, begin: datetime, end: datetime) -> Iterator[Line]:
    planned = list(_planned(context, begin))
    progress, before = Progress(context), begin - _TICK
    for number, (name, origin, schedule) in enumerate(planned):
        progress.show(f"{number} of {format_count(len(planned), 'task')}")
        runs = schedule.count_between(before, end)
        first = schedule.next_after(before) if runs else None
        last = schedule.latest_at_or_before(end) if runs else None
        lost = sum(gap.count for gap in schedule.lost_between(before, end))
        yield Line(name, origin, schedule, runs, first, last, lost)


def _starts(
    lines: Sequence[Line], begin: datetime, end: datetime
) -> Iterator[tuple[datetime, str]]:
    def starts_of(line: Line) -> Iterator[tuple[datetime, str]]:
        for instant in line.schedule.upcoming(begin - _TICK):
            if instant > end:
                return
            yield instant, line.name

    return merge(*(starts_of(line) for line in lines))


@dataclass(frozen=True, slots=True)
class Simulated:
    """The starts in a span of time, by task and in order."""

    begin: datetime
    end: datetime
    lines: Sequence[Line]
    starts: Sequence[tuple[datetime, str]]

    def as_dict(self) -> dict[str, Any]:
        return {
            "from": self.begin,
            "to": self.end,
            "starts": sum(line.runs for line in self.lines),
            "tasks": [
                {
                    "name": line.name,
                    "origin": line.origin,
                    "starts": line.runs,
                    "first": line.first,
                    "last": line.last,
                    "lost": line.lost,
                }
                for line in self.lines
            ],
            "in_order": [{"at": at, "name": name} for at, name in self.starts],
        }

    def render(self, terminal: Terminal) -> None:
        zone = conf.project_zone()
        starts = format_count(sum(line.runs for line in self.lines), "start")
        span = f"from {format_instant(self.begin, zone)} to {format_instant(self.end, zone)}"
        terminal.remark(f"{starts} of {format_count(len(self.lines), 'task')} {span}.")
        if lost := sum(line.lost for line in self.lines):
            terminal.remark(f"Lost in gaps of the clock: {format_count(lost, 'occurrence')}.")
        if self.starts:
            terminal.remark()
            rows = [cells(format_instant(at, zone), name) for at, name in self.starts]
            terminal.table(rows, ("START", "TASK"))
        if self.lines:
            terminal.remark()
            ordered = sorted(self.lines, key=lambda line: (-line.runs, line.name))
            terminal.table([_row(terminal, line, zone) for line in ordered], _HEADER)


def _row(terminal: Terminal, line: Line, zone: ZoneInfo) -> list[Cell]:
    """Return the cells of a task; a terminal has no room for the usual zone."""
    numbers = [f"{line.runs:,}", *([f"{line.lost:,} lost in gaps"] if line.lost else [])]
    first = "never" if line.first is None else format_civil(line.first, zone)
    last = "" if line.last is None else format_civil(line.last, zone)
    is_usual = terminal.is_interactive and line.schedule.zone.key == zone.key
    named = "" if is_usual else f" {line.schedule.zone.key}"
    over = "" if line.origin == Origin.SETTINGS else " (over HTTP)"
    return [
        Cell((line.name,)),
        Cell(tuple(numbers), terminal.paint("WARNING" if line.lost else None)),
        *cells(first, last, f"{line.schedule.expression.text}{named}{over}"),
    ]


SIMULATE = Subcommand("simulate", "count the occurrences in a time span", _arguments, _answer)
