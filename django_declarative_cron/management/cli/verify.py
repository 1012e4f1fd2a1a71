"""``cron verify``: check the stored history against the axioms of the theory (004)."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.core.management.base import CommandError

from ... import conf, theory
from ...formatting import format_count, format_duration, format_instant, iso8601
from ...models import Origin
from ...store import trace_reading
from ...store.trace_builder import History
from ...store.trace_values import Cause
from ...theory import Late, Verdict, Violation
from .deployment_scope import NOT_REGISTERED, Scope
from .subcommand import (
    Context,
    Options,
    Progress,
    Report,
    Subcommand,
    add_format,
    read_since,
    write,
    wrong_use,
)
from .terminal import Cell, Terminal, cells

_HEADER = ("WHEN", "TASK", "AXIOM", "OWNER", "VIOLATION")
_VIOLATIONS = {
    "S1": "a run started that was not pending",
    "S2": "a second success without a new occurrence",
    "S3": "a task ran after a stop was complete",
    "S4": "a run ended that had not started",
    "S5": "a valid registration was refused, or an invalid one accepted",
    "L1": "a pending run did not start in time",
    "L2": "an initialisation did not end in time",
    "L3": "a stop did not end in time, although nothing ran",
    "EA1": "a crash together with another event",
    "EA2": "an action of a frozen scheduler",
    "EA3": "several events at the same position",
    "EA5": "a due schedule that did not become due again",
    "EA6": "a run from before a crash ended after it",
}
_NOT_COVERED = (
    "because the theory does not cover their overlap policy, retry policy or excluded occurrences"
)
_NOT_CHECKED: Mapping[Cause, str] = {
    "people": "people had paused, run or cleared their tasks",
    "clock": "the clock had been set back",
    "rows": "rows had been lost or damaged",
    "start": "earlier events are not known",
}
_SHOWN = 50
_SHOWN_OPEN = 10
_BATCH = 500


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--since",
        metavar="ISO|AGO",
        help=(
            "check the history since then: 2030-01-31T07:00 in TIME_ZONE, or such as 2h. Each task "
            "is checked from its first occurrence after that"
        ),
    )
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    scope = Scope.current()
    history = _history(scope, context, options["since"])
    report: Report
    if history is None or history.is_empty:
        report = EmptyHistory(scope.deployment)
        write(context, options, report)
        return
    verdict = theory.judge(_watched(history, context), pulses="made", set_back="hold")
    context.terminal.progress()
    report = VerifyReport(scope.deployment, history, verdict, _over_http(scope))
    write(context, options, report)
    if verdict.violations:
        found = format_count(len(verdict.violations), "violation")
        raise CommandError(f"The history has {found}.")


def _history(scope: Scope, context: Context, since: str | None) -> History | None:
    now = context.clock.now()
    begins = None if since is None else read_since("--since", since, now)
    if begins is not None and begins >= now:
        raise wrong_use(f"--since {since!r} is yet to come: it is {iso8601(now)}.")
    return trace_reading.read(
        scope.using,
        scope.deployment,
        lease=conf.options().longest_silence,
        until=now,
        since=begins,
        database_time=context.clock.database_time(),
    )


def _over_http(scope: Scope) -> Sequence[str]:
    """Return the unchecked tasks: their earlier declarations are not stored."""
    names = scope.tasks.filter(origin=Origin.HTTP).order_by("name").values_list("name", flat=True)
    return [str(name) for name in names]


def _watched(history: History, context: Context) -> Iterator[dict[str, Any]]:
    records, progress = history.records(), Progress(context)
    while batch := list(islice(records, _BATCH)):
        runs = format_count(history.runs, "run")
        progress.show(f"{runs} read, up to {_local(batch[0]['at'])}")
        yield from batch


@dataclass(frozen=True, slots=True)
class EmptyHistory:
    """A deployment that no scheduler ever initialised."""

    deployment: str

    def as_dict(self) -> dict[str, Any]:
        return {"deployment": self.deployment, "since": None, "ok": True, "runs": 0, "checked": 0}

    def render(self, terminal: Terminal) -> None:
        terminal.say(f"No scheduler of deployment {self.deployment!r} was ever initialised.")
        terminal.say(NOT_REGISTERED)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The verdict on a stored history."""

    deployment: str
    history: History
    verdict: Verdict
    over_http: Sequence[str]

    @property
    def _late(self) -> list[Late]:
        # A stop legitimately waits for runs in flight that are not checked.
        return [each for each in self.verdict.late if each.axiom == "L1"]

    def as_dict(self) -> dict[str, Any]:
        history, verdict = self.history, self.verdict
        return {
            "deployment": self.deployment,
            "since": history.begins,
            "until": history.until,
            "ok": verdict.ok,
            "runs": history.runs,
            "checked": verdict.checked_starts,
            "violations": [_violation_as_dict(each) for each in verdict.violations],
            "worst_start_latency": verdict.worst_start_latency,
            "open_obligations": [_violation_as_dict(each) for each in verdict.open_obligations],
            "late": [
                {"task": each.task, "since": each.since, "at": each.at, "frozen": each.frozen}
                for each in self._late
            ],
            "not_judged": {
                **{cause: history.set_aside[cause] for cause in _NOT_CHECKED},
                "out_of_sight": history.away,
                "outside_the_theory": verdict.ungoverned,
                "over_http": self.over_http,
            },
        }

    def render(self, terminal: Terminal) -> None:
        violations, history = self.verdict.violations, self.history
        runs = format_count(self.verdict.checked_starts, "checked run")
        extent = f"{runs} from {_local(history.begins or history.until)} to {_local(history.until)}"
        found = format_count(len(violations), "violation")
        terminal.say(f"{found} in {extent}.", self._style())
        for line in (*self._latency(), *self._open(), *self._not_checked()):
            terminal.say(line)
        if violations:
            terminal.say()
            terminal.table([_row(terminal, each) for each in violations[:_SHOWN]], _HEADER)
            terminal.say()
            terminal.say(self._rest())

    def _style(self) -> str:
        if self.verdict.violations:
            return "ERROR"
        # Without a checked run there is no success to report.
        return "SUCCESS" if self.verdict.checked_starts else "WARNING"

    def _rest(self) -> str:
        hidden = len(self.verdict.violations) - _SHOWN
        if hidden > 0:
            return f"{format_count(hidden, 'further violation')}: `--format json` has them all."
        return "`--format json` explains each violation by the events before it."

    def _latency(self) -> Iterator[str]:
        worst = self.verdict.worst_start_latency
        if worst is not None:
            yield f"The longest wait for a start: {format_duration(worst)}."
        if self._late:
            starts = format_count(len(self._late), "start")
            yield f"Late as nothing could work (suspended, cut off from the database): {starts}."

    def _open(self) -> Iterator[str]:
        reported = {(each.axiom, each.task, each.at) for each in self.verdict.violations}
        still_open = [
            each
            for each in self.verdict.open_obligations
            if (each.axiom, each.task, each.at) not in reported
        ]
        for each in still_open[:_SHOWN_OPEN]:
            task = f" {each.task!r}" if each.task else ""
            yield f"Still open: {each.axiom}{task} since {_local(each.at)}."
        if len(still_open) > _SHOWN_OPEN:
            yield f"Still open: {len(still_open) - _SHOWN_OPEN:,} more."

    def _not_checked(self) -> Iterator[str]:
        if number := self.history.runs - self.verdict.checked_starts:
            yield f"Not checked: {number:,} of {format_count(self.history.runs, 'run')}."
        for cause, reason in _NOT_CHECKED.items():
            if number := self.history.set_aside[cause]:
                yield f"Not checked, because {reason}: {format_count(number, 'run')}."
        for reason, names in (
            ("until their next occurrence", self.history.away),
            (_NOT_COVERED, self.verdict.ungoverned),
            ("because they were registered over HTTP", self.over_http),
        ):
            if names:
                yield f"Not checked, {reason}: {_names(names)}."


def _row(terminal: Terminal, each: Violation) -> list[Cell]:
    paint = terminal.paint("ERROR" if each.owner == "scheduler" else "WARNING")
    violation = Cell((_VIOLATIONS[each.axiom],), paint)
    return [*cells(_local(each.at), each.task or "", each.axiom, each.owner), violation]


def _local(instant: datetime) -> str:
    return format_instant(instant, conf.project_zone())


def _names(names: Iterable[str]) -> str:
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"


def _violation_as_dict(each: Violation) -> dict[str, Any]:
    return {
        "axiom": each.axiom,
        "at": each.at,
        "task": each.task,
        "owner": each.owner,
        "explanation": each.explanation,
    }


VERIFY = Subcommand("verify", "check the stored history against the axioms", _arguments, _answer)
