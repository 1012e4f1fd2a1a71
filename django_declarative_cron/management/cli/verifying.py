"""``cron verify``: whether what happened is what may happen, judged by the theory (004)."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from django.core.management.base import CommandError

from ... import conf, theory
from ...formatting import format_count, format_duration, format_instant, iso8601
from ...models import Origin
from ...runtime.clock import Clock
from ...store import trace
from ...store.trace import History
from ...theory import Late, Verdict, Violation
from .instants import read_instant
from .scope import NOT_REGISTERED, Scope
from .subcommand import Context, Options, Subcommand, add_format
from .table import Cell
from .terminal import Terminal

_HEADER = ("AXIOM", "WHEN", "TASK", "OWNER", "WHY")
_AXIOMS = {
    "S1": "a run starts only where it is owed",
    "S2": "no second success without a new occurrence",
    "S3": "nothing runs any more when a stop is complete",
    "S4": "a run ends only after it started",
    "S5": "valid registrations are accepted, others are not",
    "L1": "what is owed starts in time",
    "L2": "an initialisation ends in time",
    "L3": "a stop ends in time, once nothing runs",
    "EA1": "a crash comes alone",
    "EA2": "what is frozen does nothing",
    "EA3": "one thing happens at a time",
    "EA5": "what is due once is due again",
    "EA6": "after a crash nothing ends that has not started again",
}
_SHOWN = 50
_SHOWN_OPEN = 10
_LOOK_EVERY = 500
_TELL_EVERY = 0.3

Records = Iterator[dict[str, Any]]


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--since",
        metavar="ISO",
        help=(
            "judge what happened since then, such as 2030-01-31T07:00; in TIME_ZONE unless it has "
            "an offset. Each task is judged from its first occurrence after that"
        ),
    )
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    scope, clock = Scope.current(), context.clock
    told = _history(scope, clock, options["since"])
    if told is None or told.is_empty:
        _say_nothing_happened(context.terminal, scope, options)
        return
    judged = _Judged(told, _verdict(told, context), _from_outside(scope))
    if options["format"] == "json":
        context.terminal.data(judged.record(scope.deployment))
    else:
        judged.say(context.terminal)
    violations = len(judged.verdict.violations)
    if violations:
        raise CommandError(
            f"The history has {format_count(violations, 'violation')}.", returncode=1
        )


def _history(scope: Scope, clock: Clock, since: str | None) -> History | None:
    begins, now = None if since is None else read_instant("--since", since), clock.now()
    if begins is not None and begins >= now:
        raise CommandError(f"--since {since!r} is yet to come: it is {iso8601(now)}.", returncode=2)
    return trace.read(
        scope.using,
        scope.deployment,
        lease=conf.options().longest_silence,
        until=now,
        since=begins,
        database_time=clock.database_time(),
    )


def _from_outside(scope: Scope) -> Sequence[str]:
    """Return the tasks whose past forms nobody keeps, so that nobody knows what they owed."""
    names = scope.tasks.filter(origin=Origin.HTTP).order_by("name").values_list("name", flat=True)
    return [str(name) for name in names]


def _verdict(told: History, context: Context) -> Verdict:
    records = _watched(told, told.records(), context)
    verdict = theory.judge(records, pulses="made", set_back="hold")
    context.terminal.progress()
    return verdict


def _watched(told: History, records: Records, context: Context) -> Records:
    """Say now and then how far the judge is, where someone looks."""
    shown = context.clock.monotonic()
    while batch := list(islice(records, _LOOK_EVERY)):
        if context.clock.monotonic() - shown >= _TELL_EVERY:
            shown = context.clock.monotonic()
            where = format_instant(batch[0]["at"], conf.project_zone())
            context.terminal.progress(f"{format_count(told.runs, 'run')} judged, up to {where}")
        yield from batch


def _say_nothing_happened(terminal: Terminal, scope: Scope, options: Options) -> None:
    if options["format"] == "json":
        terminal.data({"deployment": scope.deployment, "since": None, "ok": True, "runs": 0})
        return
    terminal.say(f"No scheduler of deployment {scope.deployment!r} was ever initialised.")
    terminal.say(NOT_REGISTERED)


class _Judged:
    """A history and its verdict, in words and as data."""

    def __init__(self, told: History, verdict: Verdict, outside: Sequence[str]) -> None:
        self.told = told
        self._outside = outside
        self.verdict = verdict
        # A stop is told to wait where a run is in flight that is not judged.
        self._late = [each for each in verdict.late if each.axiom == "L1"]
        self._zone = conf.project_zone()

    # --- for people ---

    def say(self, terminal: Terminal) -> None:
        """Say it all."""
        violations = self.verdict.violations
        if violations:
            rows = [self._row(terminal, each) for each in violations[:_SHOWN]]
            terminal.table(rows, _HEADER)
            terminal.say()
            self._say_axioms(terminal, violations)
        role = "ERROR" if violations else "SUCCESS"
        terminal.say(f"{format_count(len(violations), 'violation')} in {self._extent()}.", role)
        for line in (*self._waits(), *self._open(), *self._left_out()):
            terminal.say(line)

    def _row(self, terminal: Terminal, each: Violation) -> list[Cell]:
        paint = terminal.paint("ERROR" if each.owner == "scheduler" else "WARNING")
        return [
            Cell((each.axiom,), paint),
            Cell((self._local(each.at),)),
            Cell((each.task or "",)),
            Cell((each.owner,)),
            Cell((each.explanation,)),
        ]

    def _say_axioms(self, terminal: Terminal, violations: Iterable[Violation]) -> None:
        broken = {each.axiom for each in violations}
        for axiom, meaning in _AXIOMS.items():
            if axiom in broken:
                terminal.say(f"{axiom}: {meaning}.")
        hidden = len(self.verdict.violations) - _SHOWN
        if hidden > 0:
            terminal.say(
                f"{format_count(hidden, 'further violation')}: `--format json` has them all."
            )
        terminal.say()

    def _extent(self) -> str:
        begins = self.told.begins or self.told.until
        runs = format_count(self.told.runs, "run")
        return f"{runs} from {self._local(begins)} to {self._local(self.told.until)}"

    def _waits(self) -> Iterator[str]:
        worst, late = self.verdict.worst_start_latency, self._late
        if worst is not None:
            yield f"The longest wait for a start: {format_duration(worst.total_seconds())}."
        if late:
            starts = format_count(len(late), "start")
            yield f"Late as nothing could work (suspended, cut off from the database): {starts}."

    def _open(self) -> Iterator[str]:
        still_open = self.verdict.open_obligations
        for each in still_open[:_SHOWN_OPEN]:
            of = f" {each.task!r}" if each.task else ""
            yield f"Still open: {each.axiom}{of} since {self._local(each.at)}."
        if len(still_open) > _SHOWN_OPEN:
            yield f"Still open: {len(still_open) - _SHOWN_OPEN:,} more."

    def _left_out(self) -> Iterator[str]:
        aside, away = self.told.set_aside, self.told.away
        if aside["people"]:
            runs = format_count(aside["people"], "run")
            yield f"Not judged, as people had paused, run or cleared their tasks: {runs}."
        if aside["clock"]:
            runs = format_count(aside["clock"], "run")
            yield f"Not judged, as the clock had been set back: {runs}."
        if aside["rows"]:
            runs = format_count(aside["rows"], "run")
            yield f"Not judged, as rows had been lost or damaged: {runs}."
        if aside["start"]:
            runs = format_count(aside["start"], "run")
            yield f"Not judged, as what came before is not known: {runs}."
        if away:
            yield f"Out of the judge's sight until their next occurrence: {_names(away)}."
        if self.verdict.ungoverned:
            yield f"Outside the theory by their overlap: {_names(self.verdict.ungoverned)}."
        if self._outside:
            yield f"Not judged, as they came over HTTP: {_names(self._outside)}."

    def _local(self, instant: datetime) -> str:
        return format_instant(instant, self._zone)

    # --- for programs ---

    def record(self, deployment: str) -> dict[str, Any]:
        """Return it all as JSON-native data."""
        told, verdict = self.told, self.verdict
        return {
            "deployment": deployment,
            "since": iso8601(told.begins),
            "until": iso8601(told.until),
            "ok": verdict.ok,
            "runs": told.runs,
            "violations": [_violation(each) for each in verdict.violations],
            "worst_start_latency": _seconds(verdict.worst_start_latency),
            "open_obligations": [_violation(each) for each in verdict.open_obligations],
            "late": [_late(each) for each in self._late],
            "not_judged": {
                **{cause: told.set_aside[cause] for cause in ("people", "clock", "rows", "start")},
                "out_of_sight": told.away,
                "outside_the_theory": list(verdict.ungoverned),
                "over_http": list(self._outside),
            },
        }


def _names(names: Iterable[str]) -> str:
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"


def _violation(each: Violation) -> dict[str, Any]:
    return {
        "axiom": each.axiom,
        "at": iso8601(each.at),
        "task": each.task,
        "owner": each.owner,
        "explanation": each.explanation,
    }


def _late(each: Late) -> dict[str, Any]:
    return {
        "task": each.task,
        "since": iso8601(each.since),
        "at": iso8601(each.at),
        "frozen": _seconds(each.frozen),
    }


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()


VERIFY = Subcommand(
    "verify",
    "judge the stored history by the theory",
    _arguments,
    _answer,
)
