"""``cron simulate``: what would run in a span of time: what is declared, and was posted."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from django.core.management.base import CommandError

from ... import conf
from ...core.schedule import Schedule
from ...formatting import format_civil, format_count, format_instant, iso8601
from ...models import Origin
from ...store.queries import read_schedule
from .instants import read_instant
from .scope import declared, tasks_if_any
from .subcommand import Context, Options, Subcommand, add_format
from .table import Cell
from .terminal import Terminal
from .upcoming import amount

_TELL_EVERY = 0.3
_LONGEST = timedelta(days=3660)


class Planned(NamedTuple):
    """Hold a task that would run."""

    name: str
    schedule: Schedule
    origin: str = str(Origin.SETTINGS)


@dataclass(frozen=True, slots=True)
class Line:
    """What one task would do.

    Args:
        name: of the task.
        origin: where it is declared, ``settings`` or ``http``.
        schedule: its expression and zone, ``@every`` counted from its registration where that
            is known, else from the beginning of the span.
        runs: number of occurrences.
        first: the first of them.
        last: the last of them.
        lost: number that gaps of the clock take.
    """

    name: str
    origin: str
    schedule: Schedule
    runs: int
    first: datetime | None
    last: datetime | None
    lost: int


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="begin", metavar="ISO", help="in TIME_ZONE; now unless given"
    )
    parser.add_argument("--to", dest="end", metavar="ISO", help="a day later unless given")
    parser.add_argument("-n", dest="count", type=amount, help="list this many starts in order")
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    begin, end = _span(context, options)
    lines = list(_lines(context, _planned(begin), begin, end))
    context.terminal.progress()
    starts = list(islice(_starts(lines, begin, end), options["count"] or 0))
    if options["format"] == "json":
        context.terminal.data(_record(lines, starts, begin, end))
    else:
        _say(context.terminal, lines, starts, begin, end)


def _span(context: Context, options: Options) -> tuple[datetime, datetime]:
    given = options["begin"]
    begin = context.clock.now() if given is None else read_instant("--from", given)
    given = options["end"]
    end = begin + timedelta(days=1) if given is None else read_instant("--to", given)
    if end <= begin:
        raise CommandError("--to must lie behind --from.", returncode=2)
    if end - begin > _LONGEST:
        raise CommandError("At most ten years can be simulated at once.", returncode=2)
    return begin, end


def _planned(begin: datetime) -> list[Planned]:
    """Return what would run: the settings say it, and the database what came over HTTP."""
    known = tasks_if_any()
    anchors = {task.name: task.registered_at for task in known if task.registered_at <= begin}
    found = [
        Planned(each.name, each.schedule.anchored(anchors.get(each.name, begin)))
        for each in declared()
        if each.enabled
    ]
    for task in known:
        schedule = read_schedule(task)[0] if task.origin == Origin.HTTP and task.enabled else None
        if schedule is not None:
            anchor = max(begin, task.registered_at) if task.name not in anchors else None
            schedule = schedule if anchor is None else schedule.anchored(anchor)
            found.append(Planned(task.name or "", schedule, str(Origin.HTTP)))
    return found


def _lines(
    context: Context, planned: Sequence[Planned], begin: datetime, end: datetime
) -> Iterator[Line]:
    shown, before = context.clock.monotonic(), begin - timedelta(microseconds=1)
    for number, (name, schedule, origin) in enumerate(planned):
        if context.clock.monotonic() - shown >= _TELL_EVERY:
            shown = context.clock.monotonic()
            context.terminal.progress(f"{number} of {format_count(len(planned), 'task')}")
        runs = schedule.count_between(before, end)
        yield Line(
            name,
            origin,
            schedule,
            runs,
            schedule.next_after(before) if runs else None,
            schedule.latest_at_or_before(end) if runs else None,
            sum(gap.count for gap in schedule.lost_between(before, end)),
        )


def _starts(
    lines: Sequence[Line], begin: datetime, end: datetime
) -> Iterator[tuple[datetime, str]]:
    def of(line: Line) -> Iterator[tuple[datetime, str]]:
        for instant in line.schedule.upcoming(begin - timedelta(microseconds=1)):
            if instant > end:
                return
            yield instant, line.name

    return merge(*(of(line) for line in lines))


def _say(
    terminal: Terminal,
    lines: Sequence[Line],
    starts: Sequence[tuple[datetime, str]],
    begin: datetime,
    end: datetime,
) -> None:
    zone = conf.project_zone()
    if starts:
        rows = [[Cell((format_instant(at, zone),)), Cell((name,))] for at, name in starts]
        terminal.table(rows, ("START", "TASK"))
        terminal.say()
    ordered = sorted(lines, key=lambda line: (-line.runs, line.name))
    if ordered:
        terminal.table([_row(terminal, line) for line in ordered], _HEADER)
        terminal.say()
    total, lost = sum(line.runs for line in lines), sum(line.lost for line in lines)
    span = f"from {format_instant(begin, zone)} to {format_instant(end, zone)}"
    terminal.say(f"{format_count(total, 'start')} of {format_count(len(lines), 'task')} {span}.")
    if lost:
        terminal.say(
            f"{format_count(lost, 'occurrence')} fall into gaps of the clock and would not run."
        )


_HEADER = ("TASK", "STARTS", "FIRST", "LAST")


def _row(terminal: Terminal, line: Line) -> list[Cell]:
    zone = line.schedule.zone
    lost = f"{line.lost:,} lost in gaps" if line.lost else ""
    numbers = tuple(filter(None, (f"{line.runs:,}", lost)))
    first = ("never",) if line.first is None else (format_civil(line.first, zone), zone.key)
    last = () if line.last is None else (format_civil(line.last, zone),)
    over = "" if line.origin == Origin.SETTINGS else "  (over HTTP)"
    schedule = f"{line.schedule.expression.text}{over}"
    return [
        Cell((line.name, schedule)),
        Cell(numbers, terminal.paint("WARNING") if lost else None),
        Cell(first),
        Cell(last),
    ]


def _record(
    lines: Sequence[Line],
    starts: Sequence[tuple[datetime, str]],
    begin: datetime,
    end: datetime,
) -> dict[str, Any]:
    return {
        "from": iso8601(begin),
        "to": iso8601(end),
        "starts": sum(line.runs for line in lines),
        "tasks": [
            {
                "name": line.name,
                "origin": line.origin,
                "starts": line.runs,
                "first": iso8601(line.first),
                "last": iso8601(line.last),
                "lost": line.lost,
            }
            for line in lines
        ],
        "in_order": [{"at": iso8601(at), "name": name} for at, name in starts],
    }


SIMULATE = Subcommand(
    "simulate",
    "show what would run in a span of time",
    _arguments,
    _answer,
)
