"""``cron backfill``: run occurrences of the past, one by one, in the foreground."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Generator, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import CommandError

from ... import conf
from ...core import events
from ...core.declarations.declaration import Declaration
from ...core.schedule import Schedule
from ...exceptions import CalendarError
from ...formatting import format_count, format_duration, format_instant, iso8601
from ...runtime.foreground import Backfill, Ran
from ...runtime.watchdog import fork_watchdog
from ...store import manual_runs
from ...store.manual_runs import DoneError, NotRegisteredError, UnreadableRowError
from .author import act, add_author
from .instants import read_instant
from .running import declaration_of
from .scope import Scope, unknown
from .subcommand import Context, Options, Subcommand, add_format

_TICK = timedelta(microseconds=1)
_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Line:
    """What became of one occurrence.

    Args:
        occurrence: which one.
        outcome: ``succeeded``, ``failed``, ``cancelled`` or ``lost``; ``done`` where it had
            succeeded before, ``would_run`` in a dry run.
        seconds: that its run took.
        error: of a failure.
        run: id of the row of its run.
        is_interrupted: somebody pressed Ctrl-C during the run.
    """

    occurrence: datetime
    outcome: str
    seconds: float | None = None
    error: str = ""
    run: int | None = None
    is_interrupted: bool = False

    @property
    def is_wrong(self) -> bool:
        """Return whether it was run and did not succeed."""
        return self.outcome in ("failed", "cancelled", "lost")


@dataclass(frozen=True, slots=True)
class Span:
    """What is to be run.

    Args:
        declaration: of the task.
        schedule: its schedule.
        since: the first instant.
        until: the last.
        total: number of occurrences.
        excluded: number of occurrences that calendars exclude.
    """

    declaration: Declaration
    schedule: Schedule
    since: datetime
    until: datetime
    total: int
    excluded: int

    def occurrences(self) -> Iterator[datetime]:
        """Yield the occurrences, oldest first.

        Raises:
            CalendarError: a calendar gives no answer, so that nobody knows whether one is next.
        """
        known = None
        for occurrence in self.schedule.upcoming(self.since - _TICK):
            if occurrence > self.until:
                return
            if (day := self.schedule.day_of(occurrence)) != known:
                self.schedule.calendar_at(occurrence)
                known = day
            yield occurrence


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of a task")
    parser.add_argument(
        "--from",
        dest="since",
        required=True,
        metavar="ISO",
        help="the first instant, such as 2030-01-31T07:00; in TIME_ZONE unless it has an offset",
    )
    parser.add_argument(
        "--to", dest="until", metavar="ISO", help="the last instant; now by default"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would run")
    parser.add_argument("--repeat", action="store_true", help="run what has succeeded once more")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    add_author(parser)
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    span = _span(context, options)
    lines: list[Line] = []
    try:
        with closing(_lines(context, options, span)) as found:
            for line in found:
                lines.append(line)
                _say(context, options, span, line, len(lines))
                if line.is_interrupted:
                    raise KeyboardInterrupt
                if line.is_wrong and not options["keep_going"]:
                    break
    except KeyboardInterrupt:
        _conclude(context, options, span, lines)
        raise CommandError(
            "Interrupted: the same command goes on where it ended.", returncode=_INTERRUPTED
        ) from None
    except CalendarError as error:
        _conclude(context, options, span, lines)
        raise CommandError(error.message, returncode=1) from error
    _conclude(context, options, span, lines)
    wrong = [line for line in lines if line.is_wrong]
    if wrong:
        first = format_instant(wrong[0].occurrence, span.schedule.zone)
        text = f"{format_count(len(wrong), 'run')} did not succeed, the first for {first}."
        raise CommandError(text, returncode=1)


def _span(context: Context, options: Options) -> Span:
    now = context.clock.now()
    since = read_instant("--from", options["since"])
    until = now if options["until"] is None else read_instant("--to", options["until"])
    if until > now:
        raise CommandError(
            f"--to {options['until']!r} is yet to come: write the past.", returncode=2
        )
    if since > until:
        raise CommandError("--from is behind --to.", returncode=2)
    declaration = declaration_of(options["name"])
    row = Scope.current().tasks.filter(name=declaration.name).first()
    if row is None:
        raise unknown(declaration.name, ())
    schedule = declaration.schedule.anchored(row.registered_at)
    # Counted once: a calendar is asked for each day, and every line says of how many it is.
    total = schedule.count_between(since - _TICK, until)
    excluded = sum(day.count for day in schedule.excluded_between(since - _TICK, until))
    return Span(declaration, schedule, since, until, total, excluded)


def _lines(context: Context, options: Options, span: Span) -> Generator[Line]:
    name, repeat = span.declaration.name, options["repeat"]
    known = set() if repeat else manual_runs.occurrences_done(name, span.since, span.until)
    work = None if options["dry_run"] else _work(context, options, span)
    with nullcontext() if work is None else work.watched():
        for occurrence in span.occurrences():
            if occurrence in known:
                yield Line(occurrence, "done")
            elif work is None:
                yield Line(occurrence, "would_run")
            else:
                yield _run(work, occurrence)


def _work(context: Context, options: Options, span: Span) -> Backfill:
    name = span.declaration.name
    who = act(options, context.clock.now())
    asked = f"{iso8601(span.since)} to {iso8601(span.until)}"
    try:
        note = f"{asked}: {who.note}" if who.note else asked
        manual_runs.audit_backfill(name, replace(who, note=note))
    except NotRegisteredError as error:
        raise unknown(name, ()) from error
    return Backfill(
        span.declaration,
        context.clock,
        repeat=options["repeat"],
        waits=lambda: context.terminal.warn(
            f"Waits: a run of {name!r} is in progress, or due by its schedule."
        ),
        watchdog=lambda: fork_watchdog(conf.options(), context.clock) if context.is_alone else None,
    )


def _run(work: Backfill, occurrence: datetime) -> Line:
    try:
        return _line(occurrence, work.run(occurrence))
    except DoneError:
        return Line(occurrence, "done")
    except NotRegisteredError as error:
        raise unknown(work.declaration.name, ()) from error
    except UnreadableRowError as error:
        name = work.declaration.name
        text = f"The row of {name!r} is damaged ({error}): a scheduler mends it when it starts."
        raise CommandError(text, returncode=1) from error


def _line(occurrence: datetime, ran: Ran) -> Line:
    match ran.end:
        case events.TaskRunCompleted():
            outcome = "succeeded"
        case events.TaskRunFailed():
            outcome = "failed"
        case events.TaskRunCancelled():
            outcome = "cancelled"
        case _:
            outcome = "lost"
    result = ran.result
    interrupted = "KeyboardInterrupt" in result.errors
    return Line(occurrence, outcome, result.duration, result.error, result.run, interrupted)


_WORDS = {
    "succeeded": "succeeded",
    "failed": "failed",
    "cancelled": "was cancelled",
    "lost": "had been given up meanwhile: its end is not recorded",
    "done": "has succeeded before: not run again",
    "would_run": "would run",
}


def _say(context: Context, options: Options, span: Span, line: Line, number: int) -> None:
    if options["format"] == "json":
        context.terminal.progress(f"{number} of {span.total}")
        return
    took = "" if line.seconds is None else f" after {format_duration(line.seconds)}"
    error = f": {line.error}" if line.is_wrong and line.error else ""
    at = format_instant(line.occurrence, span.schedule.zone)
    role = "ERROR" if line.is_wrong else ""
    place = f"{number}/{span.total}"
    context.terminal.say(f"{place}  {at}  {_WORDS[line.outcome]}{took}{error}", role)


def _conclude(context: Context, options: Options, span: Span, lines: list[Line]) -> None:
    tally = {outcome: sum(line.outcome == outcome for line in lines) for outcome in _WORDS}
    if options["format"] == "json":
        context.terminal.progress()
        context.terminal.data(_record(options, span, lines, tally))
        return
    if not span.total:
        context.terminal.say(f"{span.declaration.name!r} has no occurrences there.")
    if span.excluded:
        said = format_count(span.excluded, "occurrence")
        context.terminal.say(f"{said} on days that calendars exclude.")
    told = [
        f"{number:,} {outcome.replace('_', ' ')}" for outcome, number in tally.items() if number
    ]
    rest = span.total - len(lines)
    if told:
        left = f", {rest:,} not reached" if rest else ""
        context.terminal.say(f"{', '.join(told)}{left}.")


def _record(
    options: Options, span: Span, lines: list[Line], tally: dict[str, int]
) -> dict[str, Any]:
    return {
        "name": span.declaration.name,
        "from": iso8601(span.since),
        "to": iso8601(span.until),
        "dry_run": options["dry_run"],
        "ok": not any(line.is_wrong for line in lines),
        "total": span.total,
        "excluded": span.excluded,
        **tally,
        "occurrences": [
            {
                "scheduled_for": iso8601(line.occurrence),
                "outcome": line.outcome,
                "seconds": line.seconds,
                "error": line.error,
                "run": line.run,
            }
            for line in lines
        ],
    }


BACKFILL = Subcommand(
    "backfill", "run occurrences of the past, one by one, in the foreground", _arguments, _answer
)
