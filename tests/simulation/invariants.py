"""What holds of the rows after every step of every story, whatever happened.

Each function yields what is wrong, in words; ``ALL`` names them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise

from .ledger import DID_NOT_RUN, RUNNING, Ledger, Row, Snapshot, delay_of, mark_of, schedule_of

Invariant = Callable[[Snapshot, Ledger], Iterator[str]]

_TICK = timedelta(microseconds=1)


def one_run_at_a_time(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """One run in progress for a task at most, and its slot says so."""
    running = Counter(run["task_name"] for run in snapshot.runs if run["outcome"] == RUNNING)
    for name, number in running.items():
        if number > 1:
            yield f"{name} runs {number} times at once"
    for run in snapshot.runs:
        slot = run["task_name"] if run["outcome"] == RUNNING else None
        if run["running_slot"] != slot:
            yield f"run {run['id']} is {run['outcome']} and holds the slot {run['running_slot']!r}"


def tasks_and_runs_agree(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """A task names its run in progress, of whatever epoch, and no other."""
    running = {run["task_name"]: run["id"] for run in snapshot.runs if run["outcome"] == RUNNING}
    for name, task in snapshot.tasks.items():
        if task["running_run"] != running.get(name):
            yield f"{name} names run {task['running_run']}, in progress is {running.get(name)}"


def state_follows_declaration(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """There is a row for each declared task, as it is declared, and no other."""
    if ledger.active is None:
        return
    declared = {
        (each["name"], each["cron"], each["timezone"], each["retry_delay"])
        for each in ledger.active
    }
    stored = {
        (name, task["cron"], task["timezone"], task["retry_delay"])
        for name, task in snapshot.tasks.items()
    }
    for name, cron, *_ in declared - stored:
        yield f"{name} is declared for {cron!r} and has no such row"
    for name, cron, *_ in stored - declared:
        yield f"{name} has a row for {cron!r} and is not declared so"


def nothing_is_set_aside(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """No row is damaged here, so none is out of the way."""
    for name, task in snapshot.tasks.items():
        if task["broken_reason"]:
            yield f"{name} is set aside: {task['broken_reason']}"


# --- state and history ---------------------------------------------------------------


def state_follows_history(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """LA, LS, PR and the counters say what the runs say."""
    for name, task in snapshot.tasks.items():
        runs = snapshot.started(name, ledger.chains[name])
        expected = _expected(task, runs)
        ever = ledger.first_epochs[task["id"]]
        expected["run_count"] = sum(run["epoch"] >= ever for run in snapshot.started(name))
        if task["freed_at"] in _ends_of_before(snapshot.started(name), ledger.chains[name]):
            # A run of an earlier declaration frees the task, and tells it nothing else.
            del expected["freed_at"]
        if ledger.stepped_back:
            # Where a mark was set back, the occurrence was set back with it.
            del expected["occurrence_at"]
        for field, value in expected.items():
            if task[field] != value:
                yield f"{name}: {field} is {task[field]}, the runs say {value}"
        yield from _retry(name, task, runs, ledger)


def _expected(task: Row, runs: list[Row]) -> dict[str, object]:
    ended = [run for run in runs if run["outcome"] in ("succeeded", "failed")]
    successes = [run for run in ended if run["outcome"] == "succeeded"]
    since = successes[-1]["id"] if successes else 0
    newest = runs[-1] if runs else None
    return {
        "last_attempt_at": newest and newest["started_at"],
        "last_success_at": successes[-1]["finished_at"] if successes else None,
        "occurrence_at": newest and newest["scheduled_for"],
        "attempt": newest["attempt"] if newest else 0,
        "failures": sum(run["id"] > since for run in ended),
        "freed_at": ended[-1]["finished_at"] if ended else None,
        "orphaned": newest is not None and newest["outcome"] == "interrupted",
    }


def _ends_of_before(runs: list[Row], chain: list[int]) -> set[object]:
    ended = (run for run in runs if run["epoch"] not in chain and run["outcome"] != RUNNING)
    return {run["finished_at"] for run in ended}


def _retry(name: str, task: Row, runs: list[Row], ledger: Ledger) -> Iterator[str]:
    pending = task["pending_retry_until"]
    failed = bool(runs) and runs[-1]["outcome"] == "failed"
    if not failed:
        if pending is not None:
            yield f"{name}: a retry is pending at {pending}, the newest run did not fail"
        return
    due = runs[-1]["finished_at"] + delay_of(task)
    if pending is None and ledger.cleared.get(name, 0) >= runs[-1]["id"]:
        return
    if pending != due and not (ledger.stepped_back and pending is not None and pending < due):
        yield f"{name}: the retry is pending at {pending}, the failure says {due}"


def what_is_over_stays_over(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """A run that ended, or an occurrence that did not run, is never written again."""
    found = {run["id"]: run for run in snapshot.runs}
    for key, before in ledger.settled.items():
        if key not in found:
            yield f"run {key} is gone"
        elif _ending(found[key]) != before:
            yield f"run {key} was {before} and is {_ending(found[key])}"
    for key, run in found.items():
        if run["outcome"] != RUNNING:
            ledger.settled.setdefault(key, _ending(run))


def _ending(run: Row) -> tuple[object, ...]:
    return (run["outcome"], run["finished_at"], run["count"], run["error"])


def runs_are_whole(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """A run has a start, an instance and a term, and an end once it is over."""
    for run in snapshot.runs:
        if run["outcome"] in DID_NOT_RUN:
            continue
        if None in (run["started_at"], run["instance_id"]) or not run["term"]:
            yield f"run {run['id']} lacks its start, its instance or its term"
        if (run["finished_at"] is None) != (run["outcome"] == RUNNING):
            yield f"run {run['id']} is {run['outcome']} and ends at {run['finished_at']}"


def what_ended_was_called_once(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """Callbacks are called for committed runs only, each once at most."""
    rows = Counter(_call(run) for run in snapshot.runs if run["outcome"] not in DID_NOT_RUN)
    for call, times in ledger.calls.items():
        if times > rows[call]:
            yield f"{call[0]} was called {times} times for {rows[call]} runs at {call[1]}"
    for run in snapshot.runs:
        if run["outcome"] in ("succeeded", "failed") and not ledger.calls[_call(run)]:
            yield f"run {run['id']} of {run['task_name']} {run['outcome']} without a call"


def _call(run: Row) -> tuple[str, datetime, int, str]:
    return (run["task_name"], run["started_at"], run["attempt"], run["reason"])


# --- occurrences and pauses ---


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
    """Return what rows say of occurrences since the epoch began, repetitions left out."""
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


# --- when to look again ----------------------------------------------------------------


def tasks_are_looked_at_in_time(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """A task that waits is looked at by its next occurrence, by its retry, and at once if owed."""
    for name, task in snapshot.tasks.items():
        wake, following = task["wake_at"], schedule_of(task).next_after(mark_of(task))
        if task["running_run"] is not None:
            if wake is not None:
                yield f"{name} runs and is to be looked at, at {wake}"
            continue
        if task["paused_since"] is not None:
            following = None
        elif task["next_run_at"] != following:
            yield f"{name}: the next run is at {task['next_run_at']}, the calendar says {following}"
        for reason, at in _asks(task, following, snapshot.now):
            if at is not None and (wake is None or wake > max(at, snapshot.now)):
                yield f"{name} is looked at at {wake}, too late for its {reason} at {at}"


def _asks(
    task: Row, following: datetime | None, now: datetime
) -> Iterator[tuple[str, datetime | None]]:
    yield "request", now if task["run_requested_at"] else None
    if task["paused_since"] is not None:
        yield "resumption", task["paused_until"]
        return
    yield "occurrence", following
    yield "retry", task["pending_retry_until"]
    yield "restart", now if task["orphaned"] else None
    yield "first coming", now if task["boot_at"] else None


# --- leaders -----------------------------------------------------------------------------


def terms_only_grow(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """A term is one leader's, none comes back, and runs are claimed in their order."""
    for state in snapshot.states:
        if state["term"] < ledger.newest_term:
            yield f"the term was {ledger.newest_term} and is {state['term']}"
        ledger.newest_term = max(ledger.newest_term, state["term"])
    newest, leaders = 0, {}
    for run in snapshot.runs:
        if run["outcome"] in DID_NOT_RUN:
            continue
        if run["term"] < newest:
            yield f"run {run['id']} was claimed under term {run['term']}, after {newest}"
        newest = max(newest, run["term"])
        if leaders.setdefault(run["term"], run["instance_id"]) != run["instance_id"]:
            yield f"run {run['id']}: two instances claimed runs under term {run['term']}"


def epochs_only_grow(snapshot: Snapshot, ledger: Ledger) -> Iterator[str]:
    """No task has an epoch that the deployment has not given out, and its runs come in order."""
    for state in snapshot.states:
        for name, task in snapshot.tasks.items():
            if task["epoch"] > state["epoch"]:
                yield f"{name} has the epoch {task['epoch']}, newest is {state['epoch']}"
    newest: dict[str, int] = {}
    for run in snapshot.runs:
        name, epoch = run["task_name"], run["epoch"]
        if epoch < newest.get(name, 0):
            yield f"{name}: run {run['id']} is of epoch {epoch}, after {newest[name]}"
        newest[name] = max(epoch, newest.get(name, 0))


ALL: Mapping[str, Invariant] = {
    invariant.__name__.replace("_", " "): invariant
    for invariant in (
        one_run_at_a_time,
        tasks_and_runs_agree,
        state_follows_declaration,
        nothing_is_set_aside,
        every_occurrence_is_accounted_for,
        lost_minutes_are_told_once,
        no_occurrence_succeeds_twice,
        a_pause_discharges,
        what_is_disabled_rests,
        pauses_are_kept,
        state_follows_history,
        what_is_over_stays_over,
        runs_are_whole,
        what_ended_was_called_once,
        tasks_are_looked_at_in_time,
        terms_only_grow,
        epochs_only_grow,
    )
}


def broken(snapshot: Snapshot, ledger: Ledger) -> Iterator[tuple[str, str]]:
    """Return the name of every invariant that does not hold, and what is wrong."""
    for name, invariant in ALL.items():
        for wrong in invariant(snapshot, ledger):
            yield name, wrong
