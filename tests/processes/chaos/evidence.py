"""What the callbacks wrote down, judged without a look at the scheduler's own rows."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path


@dataclass
class Attempt:
    """One call of a callback, by the monotonic clock of the machine.

    Args:
        task: its name.
        occurrence: what it ran for.
        reason: why.
        pid: process it ran in.
        start: first thing it did.
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
        pid: of it.
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
        first: began first.
        second: began before the first was over.
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
    """Tell whether the process ended, or was stopped for long, before it could tell."""
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
