"""The course of a storm, from the empty database to the verdict."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from . import clocks, judges
from .clocks import Clock
from .fleet import Fleet
from .judges import Accounts, Attempt, Overlap
from .place import Place
from .plan import Plan
from .storm import Storm, Watch

GRACE = 3.0
_SHOWN = 5
# A machine may have so much else to do.
_LONGEST_START = 300
# Asked to end before it could listen, killed, or without a database when it began.
_EXITS = (0, 1, -signal.SIGTERM, -signal.SIGKILL)


@dataclass
class Report:
    """What came of a storm."""

    plan: Plan
    storm: Storm
    watch: Watch
    exits: Counter[int]
    attempts: list[Attempt]
    overlaps: list[Overlap]
    repeated: list[tuple[Attempt, Attempt]]
    accounts: Accounts
    verdict: dict[str, Any]
    errors: Counter[str]
    took: float
    where: str

    def wrong(self) -> dict[str, list[Any]]:
        """Return everything that must not be."""
        found = self.accounts
        return {
            "two calls at once": [each for each in self.overlaps if not each.woken],
            "an occurrence succeeded twice, by the evidence": list(self.repeated),
            "two runs at once, by the rows": list(found.at_once),
            "an occurrence succeeded twice, by the rows": list(found.twice),
            "an occurrence without a row": list(found.unaccounted),
            "a run without an end": list(found.still_running),
            "a task left behind": list(found.late),
            "more calls than runs": [len(self.attempts)] if len(self.attempts) > found.runs else [],
            "violations": list(self.verdict.get("violations", ["no verdict"])),
            "exit codes": [code for code in self.exits if code not in _EXITS],
        }

    @property
    def is_fine(self) -> bool:
        return not any(self.wrong().values())

    def text(self) -> str:
        return "\n".join([*self._weather(), *self._sums(), *self._faults()])

    def _weather(self) -> list[str]:
        plan = self.plan
        events = ", ".join(f"{name} {count}" for name, count in sorted(self.storm.counts.items()))
        return [
            f"{plan.minutes:g} min of {plan.schedulers} schedulers and {plan.tasks} minutely tasks"
            f" on {self.where}, lease {plan.lease:g} s, seed {plan.seed};"
            f" {self.took:.0f} s with beginning and end",
            f"events: {events}",
            f"exits by code: {dict(sorted(self.exits.items()))}; terms {self.watch.terms}",
            f"database away: {_spread(sorted(self.storm.away))}; clock set by"
            f" {_spread(sorted(abs(step) for step in self.storm.steps))}",
        ]

    def _sums(self) -> list[str]:
        found = self.accounts
        reasons = Counter(each.reason for each in self.attempts)
        cut = sum(each.end is None for each in self.attempts)
        woken = [each for each in self.overlaps if each.woken]
        return [
            f"occurrences {found.occurrences}, runs {found.runs}, calls {len(self.attempts)}"
            f" ({cut} cut off): {dict(sorted(reasons.items()))}",
            f"rows: {dict(sorted(found.outcomes.items()))}",
            f"at once after waking from a stop beyond the lease: {len(woken)}"
            f" {_spread(sorted(each.seconds for each in woken))}",
            f"verify: worst start {self.verdict.get('worst_start_latency')} s,"
            f" not judged {_counted(self.verdict.get('not_judged', {}))}",
            f"errors logged: {dict(self.errors.most_common(_SHOWN))}",
        ]

    def _faults(self) -> list[str]:
        lines = []
        for name, found in self.wrong().items():
            lines.append(f"{name}: {len(found)}")
            lines += [f"    {each}" for each in found[:_SHOWN]]
        return lines


def run(plan: Plan, place: Place, directory: Path) -> Report:
    """Run a storm."""
    began = time.monotonic()
    call_command("migrate", verbosity=0)
    connection.close()
    environment = {**place.environment, **plan.environment()}
    fleet = Fleet(plan.schedulers, directory, environment, GRACE)
    fleet.fill()
    fleet.wait_until_up(_LONGEST_START)
    watch = Watch()
    clock = Clock(os.environ.get(clocks.VARIABLE, ""))
    storm = Storm(plan, fleet, place, watch, clock)
    try:
        storm.blow()
        fleet.shut(GRACE + 10)
        if storm.steps:
            clock.set(0)
        # Of its own, so that what the first ones said is not taken for what the last one says.
        calm = directory / "calm"
        calm.mkdir()
        last = Fleet(1, calm, environment, plan.longest + 60)
        stopped_at = _calm(plan, last)
    finally:
        watch.stop()
        fleet.shut(0)
    lives = [*fleet.lives(plan.lease), *last.lives(plan.lease)]
    attempts = judges.read(Path(plan.evidence), judges.registrations())
    return Report(
        plan,
        storm,
        watch,
        fleet.exits + last.exits,
        attempts,
        judges.overlaps(attempts, lives),
        judges.repeated(attempts, lives),
        judges.audit(stopped_at, is_timed=not storm.steps),
        _verdict(),
        _errors(directory),
        time.monotonic() - began,
        type(place).__name__,
    )


def _calm(plan: Plan, last: Fleet) -> datetime:
    """Let one scheduler put everything right: find the dead, start their runs again, end."""
    last.fill()
    last.wait_until_up(_LONGEST_START)
    time.sleep(plan.lease * 2 + 5)
    stopped_at = datetime.now(UTC)
    last.shut(plan.longest + 90)
    return stopped_at


def _verdict() -> dict[str, Any]:
    out = StringIO()
    try:
        call_command("cron", "verify", "--format", "json", stdout=out)
    except CommandError as error:
        if error.returncode != 1:
            raise
    verdict: dict[str, Any] = json.loads(out.getvalue())
    return verdict | {"violations": judges.without_isolated(verdict["violations"])}


def _errors(directory: Path) -> Counter[str]:
    """Count the last lines of tracebacks in the logs."""
    last = re.compile(r"^([A-Za-z_]\w*(?:\.\w+)*(?:Error|Exception|Exit|Interrupt)\b[^\n]*)", re.M)
    found: Counter[str] = Counter()
    for log in directory.rglob("*.log"):
        found.update(each[:100] for each in last.findall(log.read_text(errors="replace")))
    return found


def _counted(found: dict[str, Any]) -> dict[str, int]:
    return {name: len(each) if isinstance(each, list) else each for name, each in found.items()}


def _spread(values: list[float]) -> str:
    if not values:
        return "none"
    return f"{len(values)}, median {median(values):.2f} s, worst {values[-1]:.2f} s"
