"""``cron backfill``: run occurrences of the past, one by one, in the foreground."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import CommandError

from ... import conf
from ...core import events
from ...core.declarations.declaration import Declaration
from ...core.schedule import Schedule
from ...exceptions import CalendarError
from ...formatting import format_count, format_elapsed, format_instant, iso8601
from ...runtime.foreground import Backfill
from ...runtime.watchdog import fork_watchdog
from ...store import manual_runs
from ...store.manual_runs import DoneError
from .deployment_scope import Scope, unknown
from .run import declaration_of, refusals_as_errors
from .subcommand import (
    Context,
    Options,
    Subcommand,
    act,
    add_author,
    add_format,
    read_instant,
    write,
    wrong_use,
)
from .terminal import Terminal

_TICK = timedelta(microseconds=1)
_INTERRUPTED = 130
_TEXTS = {
    "succeeded": "succeeded",
    "failed": "failed",
    "cancelled": "was cancelled",
    "lost": "had been given up meanwhile: its end is not recorded",
    "done": "has succeeded before: not run again",
    "would_run": "would run",
}
_COUNTED = {"done": "had succeeded before", "would_run": "would run"}
_OUTCOMES = {
    events.TaskRunCompleted: "succeeded",
    events.TaskRunFailed: "failed",
    events.TaskRunCancelled: "cancelled",
}


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the task")
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


@dataclass(frozen=True, slots=True)
class Line:
    """The outcome of one occurrence: a key of ``_TEXTS``."""

    occurrence: datetime
    outcome: str
    seconds: float | None = None
    error: str = ""
    run: int | None = None
    is_interrupted: bool = False

    @property
    def is_wrong(self) -> bool:
        return self.outcome in ("failed", "cancelled", "lost")


@dataclass(frozen=True, slots=True)
class Span:
    """The occurrences to run."""

    declaration: Declaration
    schedule: Schedule
    since: datetime
    until: datetime
    total: int
    excluded: int
    """Number of occurrences on days that calendars exclude."""

    def occurrences(self) -> Iterator[datetime]:
        """Yield the occurrences, oldest first; an unanswered calendar raises ``CalendarError``."""
        known = None
        for occurrence in self.schedule.upcoming(self.since - _TICK):
            if occurrence > self.until:
                return
            if (day := self.schedule.day_of(occurrence)) != known:
                self.schedule.calendar_at(occurrence)
                known = day
            yield occurrence


@dataclass(frozen=True, slots=True)
class BackfillReport:
    """The outcomes so far, each of which is shown when it is added."""

    terminal: Terminal
    span: Span
    is_dry: bool
    is_json: bool
    lines: list[Line] = field(default_factory=list)

    def add(self, line: Line) -> None:
        self.lines.append(line)
        number, total = len(self.lines), self.span.total
        if self.is_json:
            self.terminal.progress(f"{number} of {total}")
            return
        took = "" if line.seconds is None else f" after {format_elapsed(line.seconds)}"
        error = f": {line.error}" if line.is_wrong and line.error else ""
        at = format_instant(line.occurrence, self.span.schedule.zone)
        text = f"{number}/{total}  {at}  {_TEXTS[line.outcome]}{took}{error}"
        self.terminal.say(text, "ERROR" if line.is_wrong else "")

    @property
    def wrong(self) -> list[Line]:
        return [line for line in self.lines if line.is_wrong]

    def as_dict(self) -> dict[str, Any]:
        found = Counter(line.outcome for line in self.lines)
        return {
            "name": self.span.declaration.name,
            "from": self.span.since,
            "to": self.span.until,
            "dry_run": self.is_dry,
            "ok": not self.wrong,
            "total": self.span.total,
            "excluded": self.span.excluded,
            **{outcome: found[outcome] for outcome in _TEXTS},
            "occurrences": [
                {
                    "scheduled_for": line.occurrence,
                    "outcome": line.outcome,
                    "seconds": line.seconds,
                    "error": line.error,
                    "run": line.run,
                }
                for line in self.lines
            ],
        }

    def render(self, terminal: Terminal) -> None:
        span, found = self.span, Counter(line.outcome for line in self.lines)
        if not span.total:
            terminal.say(f"{span.declaration.name!r} has no occurrences there.")
        if span.excluded:
            number = format_count(span.excluded, "occurrence")
            terminal.say(f"{number} on days that calendars exclude.")
        parts = [
            f"{found[outcome]:,} {_COUNTED.get(outcome, outcome)}"
            for outcome in _TEXTS
            if found[outcome]
        ]
        rest = span.total - len(self.lines)
        if parts:
            left = f", {rest:,} not reached" if rest else ""
            terminal.say(f"{', '.join(parts)}{left}.")


def _answer(context: Context, options: Options) -> None:
    span = _span(context, options)
    is_json = options["format"] == "json"
    report = BackfillReport(context.terminal, span, options["dry_run"], is_json)
    stopped: BaseException | None = None
    try:
        _run_all(context, options, report)
    except (KeyboardInterrupt, CalendarError) as error:
        stopped = error
    context.terminal.progress()
    write(context, options, report)
    if isinstance(stopped, CalendarError):
        raise CommandError(stopped.message) from stopped
    if stopped is not None:
        text = "Interrupted: the same command goes on where it ended."
        raise CommandError(text, returncode=_INTERRUPTED) from None
    if report.wrong:
        first = format_instant(report.wrong[0].occurrence, span.schedule.zone)
        number = format_count(len(report.wrong), "run")
        raise CommandError(f"{number} did not succeed, the first for {first}.")


def _run_all(context: Context, options: Options, report: BackfillReport) -> None:
    span = report.span
    name, repeat = span.declaration.name, options["repeat"]
    known = set() if repeat else manual_runs.occurrences_done(name, span.since, span.until)
    work = None if options["dry_run"] else _work(context, options, span)
    with nullcontext() if work is None else work.watched():
        for occurrence in span.occurrences():
            if occurrence in known:
                line = Line(occurrence, "done")
            elif work is None:
                line = Line(occurrence, "would_run")
            else:
                line = _run(work, occurrence)
            report.add(line)
            if line.is_interrupted:
                raise KeyboardInterrupt
            if line.is_wrong and not options["keep_going"]:
                return


def _span(context: Context, options: Options) -> Span:
    now = context.clock.now()
    since = read_instant("--from", options["since"])
    until = now if options["until"] is None else read_instant("--to", options["until"])
    if until > now:
        raise wrong_use(f"--to {options['until']!r} is yet to come: write the past.")
    if since > until:
        raise wrong_use("--from is behind --to.")
    declaration = declaration_of(options["name"])
    row = Scope.current().tasks.filter(name=declaration.name).first()
    if row is None:
        raise unknown(declaration.name, ())
    schedule = declaration.schedule.anchored(row.registered_at)
    # Counted once: a calendar is asked for each day, and every line shows the total.
    total = schedule.count_between(since - _TICK, until)
    excluded = sum(day.count for day in schedule.excluded_between(since - _TICK, until))
    return Span(declaration, schedule, since, until, total, excluded)


def _work(context: Context, options: Options, span: Span) -> Backfill:
    name, who = span.declaration.name, act(options, context.clock.now())
    note = f"{iso8601(span.since)} to {iso8601(span.until)}"
    with refusals_as_errors(name):
        manual_runs.audit_backfill(
            name, replace(who, note=f"{note}: {who.note}" if who.note else note)
        )
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
    with refusals_as_errors(work.declaration.name):
        try:
            ran = work.run(occurrence)
        except DoneError:
            return Line(occurrence, "done")
    result, outcome = ran.result, _OUTCOMES.get(type(ran.end), "lost")
    interrupted = "KeyboardInterrupt" in result.errors
    return Line(
        occurrence, outcome, ran.took.total_seconds(), result.error, result.run, interrupted
    )


BACKFILL = Subcommand(
    "backfill", "run occurrences of the past, one by one, in the foreground", _arguments, _answer
)
