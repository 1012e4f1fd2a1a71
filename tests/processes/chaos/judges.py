"""The judges of a storm: what the callbacks wrote down themselves, and the rows.

The first are judged without a look at the scheduler's own rows; by the second each occurrence is
accounted for, and none ran twice.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from django_declarative_cron.core.repeated_failures import is_suspicious
from django_declarative_cron.models import Outcome, ScheduledTask, TaskRun


@dataclass
class Attempt:
    """One call of a callback, by the monotonic clock of the machine.

    Args:
        end: last thing it did, ``None`` where its process ended first.
        succeeded: it was about to return.
        started: instant of the start as the scheduler has it, by a clock that may be wrong.
    """

    task: str
    occurrence: str
    reason: str
    pid: int
    start: float
    end: float | None = None
    succeeded: bool = False
    started: str = ""


@dataclass(frozen=True)
class Life:
    """One process, as the one who started it saw it.

    Args:
        born: monotonic second before it was started.
        died: monotonic second at which its end was known.
        paused: spans in which it was stopped for so long that it may count as dead.
        killed: it did not end in order, so what its callbacks had done may be lost.
    """

    pid: int
    born: float
    died: float
    paused: tuple[tuple[float, float], ...] = ()
    killed: bool = False


def read(path: Path, registrations: Mapping[tuple[str, str], int] | None = None) -> list[Attempt]:
    """Read the file; the registration of a run tells minutes apart that come twice."""
    known = registrations or {}
    attempts: dict[str, Attempt] = {}
    for line in path.read_text().splitlines():
        said = json.loads(line)
        if said["event"] == "start":
            started = said.get("started", "")
            number = known.get((said["task"], started))
            attempts[said["run"]] = Attempt(
                said["task"],
                said["occurrence"] if number is None else f"{said['occurrence']} of {number}",
                said["reason"],
                said["pid"],
                said["at"],
                started=started,
            )
        else:
            attempts[said["run"]].end = said["at"]
            attempts[said["run"]].succeeded = said["succeeded"]
    return sorted(attempts.values(), key=lambda each: each.start)


@dataclass(frozen=True)
class Overlap:
    """Two calls for one task at once.

    Args:
        seconds: for how long both went on.
        woken: the first went on after its process was stopped for so long that it counted as
            dead, when nobody could know that it would ever wake.
    """

    first: Attempt
    second: Attempt
    seconds: float
    woken: bool


def overlaps(attempts: Iterable[Attempt], lives: Iterable[Life]) -> list[Overlap]:
    """Find the calls that were at once for one task."""
    found, known = [], _by_pid(lives)
    for calls in _by_task(attempts).values():
        for first, second in pairwise(calls):
            life = _life(known, first)
            end = life.died if first.end is None else first.end
            if second.start < end:
                until = min(end, _end(known, second))
                woken = any(
                    since < second.start and first.start < until_ for since, until_ in life.paused
                )
                found.append(Overlap(first, second, until - second.start, woken))
    return found


def repeated(attempts: Iterable[Attempt], lives: Iterable[Life]) -> list[tuple[Attempt, Attempt]]:
    """Find occurrences that succeeded twice although nobody's end came between.

    Whoever is killed between the return of a callback and the commit of its result
    leaves a run that is found interrupted, and is run again: at least once is promised.
    """
    found, known = [], _by_pid(lives)
    for calls in _by_task(attempts).values():
        done: dict[str, Attempt] = {}
        for each in calls:
            if not each.succeeded or each.reason == "manual":
                continue
            before = done.get(each.occurrence)
            if before is not None and not _was_lost(_life(known, before), before, each):
                found.append((before, each))
            done[each.occurrence] = each
    return found


def _was_lost(life: Life, before: Attempt, after: Attempt) -> bool:
    """Return whether the process ended, or was stopped for long, before it could tell."""
    ended = life.killed and life.died <= after.start
    return ended or any(
        since <= after.start for since, until in life.paused if until > before.start
    )


def _by_task(attempts: Iterable[Attempt]) -> dict[str, list[Attempt]]:
    calls: dict[str, list[Attempt]] = defaultdict(list)
    for each in attempts:
        calls[each.task].append(each)
    return calls


def _by_pid(lives: Iterable[Life]) -> Mapping[int, list[Life]]:
    known: dict[int, list[Life]] = defaultdict(list)
    for life in lives:
        known[life.pid].append(life)
    return known


def _life(known: Mapping[int, list[Life]], attempt: Attempt) -> Life:
    return next(_lives(known, attempt))


def _lives(known: Mapping[int, list[Life]], attempt: Attempt) -> Iterator[Life]:
    return (each for each in known[attempt.pid] if each.born <= attempt.start <= each.died)


def _end(known: Mapping[int, list[Life]], attempt: Attempt) -> float:
    return _life(known, attempt).died if attempt.end is None else attempt.end


# --- the rows ---

MINUTE = timedelta(minutes=1)


@dataclass
class Accounts:
    """What the rows say.

    Args:
        occurrences: minutes that the schedules named, up to what is accounted for.
        runs: rows that started.
        unaccounted: minutes without a row.
        twice: occurrences with two successes.
        at_once: pairs of runs of one task that overlap.
        late: tasks that were not considered to the end although nothing kept them.
    """

    occurrences: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    unaccounted: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    at_once: list[str] = field(default_factory=list)
    still_running: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)


def audit(stopped_at: datetime, *, is_timed: bool = True) -> Accounts:
    """Read all rows; every task is minutely.

    Only where nobody set the clock (``is_timed``) do the instants in rows tell what came first.
    """
    found = Accounts()
    for task in ScheduledTask.objects.order_by("name"):
        rows = list(TaskRun.objects.filter(task_name=task.name).order_by("id"))
        _of_one(found, task, rows, stopped_at, is_timed=is_timed)
        if is_timed:
            found.at_once += _at_once(rows)
    return found


def without_isolated(violations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out late starts of tasks whose runs kept dying.

    Such a task waits until nothing else runs, or for 30 seconds under one leader, and a storm
    seldom lets a leader live for so long (docs/semantics.md, "Crash loops").
    """
    return [each for each in violations if each["axiom"] != "L1" or not _is_isolated(each)]


def _is_isolated(violation: dict[str, Any]) -> bool:
    at = datetime.fromisoformat(violation["at"])
    runs = TaskRun.objects.filter(task_name=violation["task"], started_at__lte=at)
    ends = runs.order_by("-started_at").values_list("outcome", flat=True)
    interrupted = takewhile(lambda outcome: outcome == Outcome.INTERRUPTED, ends)
    return is_suspicious(len(list(interrupted)))


def registrations() -> dict[tuple[str, str], int]:
    """Return the registration that each run belongs to, by its task and the instant it started."""
    started = TaskRun.objects.exclude(started_at=None)
    return {
        (name, at.isoformat()): epoch
        for name, at, epoch in started.values_list("task_name", "started_at", "epoch")
    }


def _at_once(rows: list[TaskRun]) -> list[str]:
    started = sorted((r for r in rows if r.started_at is not None), key=lambda r: r.started_at)
    return [f"{a} {a.pk} and {b.pk}" for a, b in pairwise(started) if _overlap(a, b)]


def _of_one(
    found: Accounts,
    task: ScheduledTask,
    rows: list[TaskRun],
    stopped_at: datetime,
    *,
    is_timed: bool,
) -> None:
    started = [row for row in rows if row.started_at is not None]
    found.runs += len(started)
    found.outcomes.update(row.outcome for row in rows)
    found.still_running += [f"{r} {r.pk}" for r in rows if r.outcome == Outcome.RUNNING]
    for named, covered in _registrations(task, rows, is_timed=is_timed):
        found.occurrences += len(named)
        found.unaccounted += [f"{task.name} {each}" for each in named if each not in covered]
    succeeded = Counter(
        (row.scheduled_for, row.epoch)
        for row in started
        if row.outcome == Outcome.SUCCEEDED and row.reason != "manual"
    )
    found.twice += [f"{task.name} {each}" for each, times in succeeded.items() if times > 1]
    due = _floor(stopped_at)
    busy = any(row.finished_at is None or row.finished_at >= due for row in started)
    # One whose runs kept dying waits until nothing else runs, and the stop may come before.
    waits = task.orphaned and is_suspicious(task.interruptions)
    if task.discharged_at < due and not busy and not waits:
        found.late.append(f"{task.name} {task.discharged_at}")


def _registrations(
    task: ScheduledTask, rows: list[TaskRun], *, is_timed: bool
) -> Iterator[tuple[list[datetime], set[datetime]]]:
    """Yield the minutes that each registration named, and those it accounts for.

    After a clock was set back by hours a task begins anew, and its minutes come again. What
    is tried again is what it was, in whichever registration.
    """
    by_epoch: dict[Any, set[datetime]] = defaultdict(set)
    for row in rows:
        if row.reason != "manual" and row.attempt <= 1:
            by_epoch[row.epoch].update(_covers(row))
    epochs = sorted(by_epoch)
    for epoch in epochs:
        covered = by_epoch[epoch]
        is_first = is_timed and epoch == epochs[0]
        first = _floor(task.registered_at) if is_first else min(covered)
        last = task.discharged_at if epoch == epochs[-1] else max(covered)
        yield list(_minutes(first, last)), covered


def _covers(row: TaskRun) -> Iterator[datetime]:
    return _minutes(row.scheduled_from or row.scheduled_for, row.scheduled_for)


def _overlap(first: TaskRun, second: TaskRun) -> bool:
    return first.finished_at is None or second.started_at < first.finished_at


def _floor(instant: datetime) -> datetime:
    return instant.replace(second=0, microsecond=0)


def _minutes(first: datetime, last: datetime) -> Iterator[datetime]:
    while first <= last:
        yield first
        first += MINUTE
