"""What holds of occurrences and pauses in the rows after every step of every story."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from .ledger import Ledger
from .rows import Row, Snapshot, mark_of, schedule_of

_TICK = timedelta(microseconds=1)


def every_occurrence_is_accounted_for(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """Up to its mark each occurrence of a task ran, or was skipped or missed, and once."""
    for name, task in snapshot.tasks.items():
        base, mark = ledger.bases[name, task["epoch"]], mark_of(task)
        schedule = schedule_of(task)
        spans = sorted(_spans(name, task, base, snapshot))
        for first, last, count in spans:
            found = schedule.count_between(first - _TICK, last)
            if count != found:
                yield f"{name}: {count} from {first} to {last} in rows, {found} in the calendar"
        for (_, last, _), (first, following, _) in pairwise(spans):
            if first <= last:
                yield f"{name}: {first} to {following} is told twice, it was told up to {last}"
        total = sum(count for *_, count in spans)
        wanted = schedule.count_between(base, mark)
        if total != wanted:
            yield f"{name}: {wanted} occurrences from {base} to {mark}, {total} accounted for"
        if spans and spans[-1][1] > mark:
            yield f"{name}: {spans[-1][1]} is told of and lies beyond the mark {mark}"


def _spans(
    name: str, task: Row, base: datetime, snapshot: Snapshot
) -> Iterator[tuple[datetime, datetime, int]]:
    """Give what rows say of occurrences since the epoch began, repetitions left out."""
    for run in snapshot.started(name, [task["epoch"]]):
        is_new = run["attempt"] == 1 and run["reason"] != "manual"
        if is_new and run["scheduled_for"] > base:
            yield run["scheduled_for"], run["scheduled_for"], 1
    for row in snapshot.unserved(name, task["epoch"]):
        if row["reason"] != "dst_skip" and row["scheduled_for"] > base:
            yield row["scheduled_from"] or row["scheduled_for"], row["scheduled_for"], row["count"]


def lost_minutes_are_told_once(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """Each gap that swallowed an occurrence has one row, once the mark is past it."""
    for name, task in snapshot.tasks.items():
        base, mark = ledger.bases[name, task["epoch"]], mark_of(task)
        lost = [each.resumes_at for each in schedule_of(task).lost_between(base, mark)]
        told = [
            row["scheduled_for"]
            for row in snapshot.unserved(name, task["epoch"])
            if row["reason"] == "dst_skip"
        ]
        if sorted(told) != lost:
            yield f"{name}: gaps end at {lost}, told of are {told}"


def no_occurrence_succeeds_twice(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """One success for an occurrence of an epoch, and no boot run for what succeeded before."""
    done: set[tuple[str, datetime, int]] = set()
    served: set[tuple[str, datetime]] = set()
    for run in snapshot.runs:
        name, at, epoch = run["task_name"], run["scheduled_for"], run["epoch"]
        if run["reason"] == "boot" and (name, at) in served:
            yield f"{name}: {at} had succeeded before run {run['id']} began it as a first coming"
        if run["outcome"] != "succeeded" or run["reason"] == "manual":
            continue
        if (name, at, epoch) in done:
            yield f"{name}: a second success for {at}, run {run['id']}"
        done.add((name, at, epoch))
        served.add((name, at))


def a_pause_discharges(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """Under a pause only a person starts a task, and what fell under it never runs."""
    for name, pauses in ledger.pauses.items() if not ledger.stepped_back else ():
        for pause in pauses:
            until = pause.until or snapshot.now
            for run in snapshot.started(name):
                is_new = run["attempt"] == 1 and run["reason"] not in ("manual", "boot")
                last = until if pause.is_resumed else until - _TICK
                if is_new and pause.since < run["scheduled_for"] <= last:
                    yield f"{name}: run {run['id']} is for {run['scheduled_for']}, under a pause"
                if run["reason"] != "manual" and pause.since < run["started_at"] < until:
                    yield f"{name}: run {run['id']} began at {run['started_at']}, under a pause"


def what_is_disabled_rests(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """While a task is disabled only a person starts it."""
    for name, since in ledger.disabled.items() if not ledger.stepped_back else ():
        for run in snapshot.started(name):
            if run["reason"] != "manual" and run["started_at"] > since:
                at = run["started_at"]
                yield f"{name}: run {run['id']} began at {at}, disabled since {since}"


def pauses_are_kept(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """A task is paused while it is disabled or a person says so, and not otherwise."""
    for name, task in snapshot.tasks.items() if not ledger.stepped_back else ():
        pauses = ledger.pauses.get(name, ())
        ends = pauses[-1].until if pauses else snapshot.now
        wanted = not task["enabled"] or ends is None or ends > snapshot.now
        # One that has run out is only looked at when there is something to do.
        ran_out = bool(pauses) and task["paused_until"] == ends
        if (task["paused_since"] is not None) != wanted and not ran_out:
            since, enabled = task["paused_since"], task["enabled"]
            yield f"{name} is paused since {since}, enabled {enabled}, a person's pause ends {ends}"
