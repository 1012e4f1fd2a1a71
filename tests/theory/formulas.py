"""The formulas of the theory, evaluated naively: recursion over the positions of a trace.

Written from the theory's text alone, to compare the judge with: nothing is remembered, every
operator looks at the past or the future it names. A trace is a list of ``(second, events)``, an
event a pair of a name and what it is of: a task, a list of tasks, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

MINUTE = 60


class Task(NamedTuple):
    name: str
    cron: str | None
    delay: int | None


Registrations = tuple[Task, ...]
Event = tuple[str, Task | Registrations | None]
Trace = list[tuple[int, frozenset[Event]]]
Formula = Callable[[int], bool]


class Theory:
    """The truth of every macro and axiom at every position of one trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.end = len(trace)
        events = [event for _, here in trace for event in here]
        lists = {of for kind, of in events if kind in ("IS", "IEs", "IEf") and _is_list(of)}
        self.lists: list[Registrations] = sorted(lists, key=repr)  # type: ignore[arg-type]
        tasks = {of for _, of in events if isinstance(of, Task)}
        self.tasks = sorted(tasks.union(*self.lists), key=repr)
        for name in ("running", "first_coming", "pending", "obligation", "active", "registered"):
            setattr(self, name, cache(getattr(self, name)))

    # --- temporal operators, on formulas from positions to truth ---

    def since(self, p: Formula, q: Formula, i: int) -> bool:
        while i >= 0:
            if q(i):
                return True
            if not p(i):
                return False
            i -= 1
        return False

    def hold(self, sets: Formula, clears: Formula, i: int) -> bool:
        return self.since(lambda j: not clears(j), sets, i) and not clears(i)

    def hold_plus(self, sets: Formula, clears: Formula, i: int) -> bool:
        return self.hold(sets, clears, i) or sets(i)

    def finally_(self, p: Formula, i: int) -> bool:
        return any(p(j) for j in range(i, self.end))

    def until(self, p: Formula, q: Formula, i: int) -> bool:
        return any(q(k) and all(p(j) for j in range(i, k)) for k in range(i, self.end))

    def first_break(self, p: Formula, q: Formula, i: int) -> int | None:
        """Give where ``p W q`` breaks, ``None`` where it holds."""
        for j in range(i, self.end):
            if q(j):
                return None
            if not p(j):
                return j
        return None

    def yesterday(self, p: Formula, i: int) -> bool:
        return i > 0 and p(i - 1)

    # --- events ---

    def at(self, i: int, kind: str, of: object = None) -> bool:
        return (kind, of) in self.trace[i][1]

    def any_at(self, i: int, kind: str) -> bool:
        return any(here == kind for here, _ in self.trace[i][1])

    def re(self, x: Task, i: int) -> bool:
        return self.at(i, "REs", x) or self.at(i, "REf", x)

    def retry_due(self, x: Task, i: int) -> bool:
        return x.delay is not None and any(
            self.at(j, "REf", x) and self.trace[j][0] + x.delay == self.trace[i][0]
            for j in range(i + 1)
        )

    def minute_start(self, i: int) -> bool:
        on_the_minute = self.trace[i][0] % MINUTE == 0
        return self.any_at(i, "Tick") or (on_the_minute and self.any_at(i, "Due"))

    # --- macros ---

    def mountain(self, x: Task, i: int) -> bool:
        return self.since(lambda j: not self.minute_start(j), lambda j: self.at(j, "Due", x), i)

    def _another_comes(self, r: Registrations) -> Formula:
        return lambda i: any(self.at(i, "IEs", other) for other in self.lists if other != r)

    def registered(self, r: Registrations, i: int) -> bool:
        return self.hold(lambda j: self.at(j, "IEs", r), self._another_comes(r), i)

    def registered_by_name(self, x: Task, i: int) -> bool:
        return any(
            self.registered(r, i) and any(each.name == x.name for each in r) for r in self.lists
        )

    def first_coming(self, x: Task, i: int) -> bool:
        before = self.yesterday(lambda j: self.registered_by_name(x, j), i)
        return self.registered_by_name(x, i) and not before

    def active(self, r: Registrations, i: int) -> bool:
        another = self._another_comes(r)
        return self.hold(
            lambda j: self.at(j, "IEs", r),
            lambda j: (
                (self.any_at(j, "SS") and self.registered(r, j))
                or self.any_at(j, "Crash")
                or another(j)
            ),
            i,
        )

    def running(self, x: Task, i: int) -> bool:
        return self.hold(
            lambda j: self.at(j, "RS", x),
            lambda j: self.re(x, j) or self.any_at(j, "Crash"),
            i,
        )

    def quiescent(self, i: int) -> bool:
        return not any(self.running(x, i) for x in self.tasks)

    def orphaned(self, x: Task, i: int) -> bool:
        return self.any_at(i, "Crash") and self.hold(
            lambda j: self.at(j, "RS", x), lambda j: self.re(x, j), i
        )

    def succeeds(self, x: Task, i: int) -> bool:
        return self.at(i, "RS", x) and self.until(
            lambda j: not (self.at(j, "REf", x) or self.any_at(j, "Crash")),
            lambda j: self.at(j, "REs", x),
            i,
        )

    def pending(self, x: Task, i: int) -> bool:
        def clears(j: int) -> bool:
            return self.at(j, "RS", x) or self.first_coming(x, j)

        idle = not self.running(x, i)
        due = self.hold_plus(lambda j: self.at(j, "Due", x), clears, i) and idle
        retry = self.hold_plus(lambda j: self.retry_due(x, j), clears, i) and idle
        orphaned = self.hold(lambda j: self.orphaned(x, j), clears, i)
        boot = self.first_coming(x, i) and self.mountain(x, i) and idle
        return due or retry or orphaned or boot

    def obligation(self, r: Registrations, x: Task, i: int) -> bool:
        return x in r and self.registered(r, i) and self.active(r, i) and self.pending(x, i)

    # --- axioms: where each is broken, as (axiom, position, name) ---

    def broken(self) -> set[tuple[str, int, str | None]]:
        positions = range(self.end)
        found: set[tuple[str, int, str | None]] = set()
        for x in self.tasks:
            found |= {("S1", i, x.name) for i in positions if self._breaks_s1(x, i)}
            found |= {("S2", i, x.name) for i in self._breaks_s2(x)}
            found |= {("S3", i, x.name) for i in positions if self._breaks_s3(x, i)}
            found |= {("S4", i, x.name) for i in positions if self._breaks_s4(x, i)}
            found |= {("EA6", i, x.name) for i in self._breaks_ea6(x)}
        return found

    def _breaks_s1(self, x: Task, i: int) -> bool:
        obliged = self.yesterday(lambda j: any(self.obligation(r, x, j) for r in self.lists), i)
        return self.at(i, "RS", x) and not obliged

    def _breaks_s2(self, x: Task) -> set[int]:
        breaks = {
            self.first_break(
                lambda j: not self.succeeds(x, j), lambda j: self.at(j, "Due", x), i + 1
            )
            for i in range(self.end)
            if self.succeeds(x, i)
        }
        return {i for i in breaks if i is not None}

    def _breaks_s3(self, x: Task, i: int) -> bool:
        return self.any_at(i, "SE") and self.running(x, i)

    def _breaks_s4(self, x: Task, i: int) -> bool:
        return self.re(x, i) and not self.yesterday(lambda j: self.running(x, j), i)

    def _breaks_ea6(self, x: Task) -> set[int]:
        """Give every end after a crash that no start of the task precedes."""
        return {
            i
            for crash in range(self.end)
            if self.any_at(crash, "Crash")
            for i in range(crash, self.end)
            if self.re(x, i) and not any(self.at(j, "RS", x) for j in range(crash, i + 1))
        }

    # --- what nothing answers before the end ---

    def unanswered(self) -> set[tuple[str, str | None]]:
        positions = range(self.end)
        found: set[tuple[str, str | None]] = set()
        for r in self.lists:
            found |= {("L1", x.name) for x in r if any(self._open_l1(r, x, i) for i in positions)}
            found |= {("L2", None) for i in positions if self._open_l2(r, i)}
            found |= {("L3", None) for i in positions if self._open_l3(r, i)}
        return found

    def _open_l1(self, r: Registrations, x: Task, i: int) -> bool:
        return self.obligation(r, x, i) and not self.finally_(
            lambda j: self.at(j, "RS", x) or not self.active(r, j), i
        )

    def _open_l2(self, r: Registrations, i: int) -> bool:
        return self.at(i, "IS", r) and not self.finally_(
            lambda j: self.at(j, "IEs", r) or self.at(j, "IEf", r) or self.any_at(j, "Crash"), i
        )

    def _open_l3(self, r: Registrations, i: int) -> bool:
        def stop_starts(j: int) -> bool:
            return j == i and self.any_at(j, "SS") and self.registered(r, j)

        def first_quiescent(j: int) -> bool:
            return self.quiescent(j) and self.since(lambda k: not self.quiescent(k), stop_starts, j)

        def ended(j: int) -> bool:
            stopped = self.any_at(j, "SE") and self.registered(r, j)
            return stopped or self.any_at(j, "Crash")

        return stop_starts(i) and any(
            first_quiescent(j) and not self.finally_(ended, j) for j in range(i, self.end)
        )


def _is_list(of: object) -> bool:
    return isinstance(of, tuple) and not isinstance(of, Task)
