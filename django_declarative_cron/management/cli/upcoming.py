"""``cron next``: when a task, or an expression, runs next."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from ...core.schedule import Schedule
from ...cron import DIALECTS, describe, next_transitions
from ...formatting import format_civil, format_count, format_instant, format_relative, iso8601
from .asked import Asked, resolve
from .subcommand import Context, Options, Subcommand, add_format
from .table import Cell
from .terminal import Terminal

_MOST = 1000
_CHANGES_SHOWN = 4


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of the clock among the instants shown.

    Args:
        at: the instant.
        before: offset from UTC up to it.
        after: offset from UTC from it on.
        lost: number of occurrences that it swallows.
    """

    at: datetime
    before: timedelta
    after: timedelta
    lost: int


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


def amount(text: str, most: int = _MOST) -> int:
    """Read a number of things.

    Raises:
        ArgumentTypeError: it is none from 1 to that.
    """
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= most):
        raise ArgumentTypeError(f"{text!r} is no number from 1 to {most}")
    return int(text)


def _answer(context: Context, options: Options) -> None:
    now = context.clock.now()
    asked = resolve(options, now)
    instants = list(islice(asked.schedule.upcoming(now), options["count"]))
    changes = list(_changes(asked.schedule, now, instants[-1])) if instants else []
    if options["format"] == "json":
        context.terminal.data(_record(asked, instants, changes))
    else:
        _say(context.terminal, asked, instants, changes, now)


def _changes(schedule: Schedule, since: datetime, until: datetime) -> Iterator[ClockChange]:
    lost = {gap.resumes_at: gap.count for gap in schedule.lost_between(since, until)}
    for change in next_transitions(schedule.zone, since, until):
        taken = lost.get(change.instant, 0)
        yield ClockChange(change.instant, change.before, change.after, taken)


def _say(
    terminal: Terminal,
    asked: Asked,
    instants: Sequence[datetime],
    changes: Sequence[ClockChange],
    now: datetime,
) -> None:
    schedule = asked.schedule
    title = "" if asked.name is None else f"{asked.name}: "
    terminal.say(f"{title}{schedule.expression.text}  {schedule.zone.key}")
    terminal.say(f"{describe(schedule.expression)}.")
    for note in asked.notes:
        terminal.say(note)
    terminal.say()
    if instants:
        others = _zones_beside(asked)
        rows = [_row(instant, schedule, others, now) for instant in instants]
        terminal.table(rows, (schedule.zone.key, *others, "FROM NOW"))
    else:
        terminal.say("It does not run within the next 50 years.")
    for text in _worded(schedule, changes):
        terminal.say(text)


def _zones_beside(asked: Asked) -> list[str]:
    """Return the zones shown beside that of the schedule: the reader's, and UTC."""
    reader = [] if asked.viewer.key == asked.schedule.zone.key else [asked.viewer.key]
    return list(dict.fromkeys([*reader, "UTC"]))


def _row(instant: datetime, schedule: Schedule, others: Sequence[str], now: datetime) -> list[Cell]:
    shown = instant.astimezone(schedule.zone)
    texts = (
        f"{shown:%a} {format_instant(instant, schedule.zone)}",
        *(format_civil(instant, ZoneInfo(key)) for key in others),
        format_relative(instant, now),
    )
    return [Cell((text,)) for text in texts]


def _worded(schedule: Schedule, changes: Sequence[ClockChange]) -> Iterator[str]:
    if changes:
        yield ""
    for change in changes[:_CHANGES_SHOWN]:
        yield _change(schedule, change)
    if len(changes) > _CHANGES_SHOWN:
        more = format_count(len(changes) - _CHANGES_SHOWN, "more change")
        yield f"{more} of the clock until then."


def _change(schedule: Schedule, change: ClockChange) -> str:
    stood = (change.at + change.before).replace(tzinfo=UTC)
    stands = (change.at + change.after).replace(tzinfo=UTC)
    moved = f"At {format_civil(stood, UTC)} the clock goes to {format_civil(stands, UTC)}"
    if stands < stood:
        counted = "both count" if schedule.fold == "both" else "only the first counts"
        return f"{moved}: local times between happen twice, {counted}."
    if schedule.gap == "shift":
        return f"{moved}: what falls between runs at its end."
    if change.lost:
        return f"{moved}: {format_count(change.lost, 'occurrence')} between will not run."
    return f"{moved}: local times between do not exist."


def _record(
    asked: Asked, instants: Sequence[datetime], changes: Sequence[ClockChange]
) -> dict[str, Any]:
    schedule = asked.schedule
    return {
        "name": asked.name,
        "cron": schedule.expression.text,
        "dialect": schedule.expression.dialect,
        "timezone": schedule.zone.key,
        "description": describe(schedule.expression),
        "occurrences": [
            {"at": iso8601(instant), "local": instant.astimezone(schedule.zone).isoformat()}
            for instant in instants
        ],
        "clock_changes": [
            {
                "at": iso8601(change.at),
                "utc_offset_before": change.before.total_seconds(),
                "utc_offset_after": change.after.total_seconds(),
                "lost": change.lost,
            }
            for change in changes
        ],
        "notes": asked.notes,
    }


NEXT = Subcommand(
    "next",
    "show when a task or an expression runs next",
    _arguments,
    _answer,
)
