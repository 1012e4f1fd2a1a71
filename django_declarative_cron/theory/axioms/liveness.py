"""Liveness axioms L1 to L3: responses that must happen in time (004 Liveness Axioms).

The theory bounds responses by granted compute, with witnesses that some scheduler has. Literally,
no finite trace violates them, so unanswered obligations are only listed. The repaired reading
uses a bound instead: a lag plus a small time per task, in time that was not frozen.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..operational import OperationalState, Task, name_of
from ..operators import FrozenTime, Moment
from ..report import Late, Violation
from ..trace import Position


@dataclass(frozen=True, slots=True)
class Bound:
    """The maximum duration of a response.

    Args:
        lag: for every one: a poll and some slack.
        per_task: on top, for each task of the list.
    """

    lag: timedelta = timedelta(seconds=90)
    per_task: timedelta = timedelta(milliseconds=6)

    def of(self, tasks: int) -> timedelta:
        return self.lag + tasks * self.per_task


@dataclass(slots=True)
class _Asked:
    moment: Moment
    frozen: timedelta
    bound: timedelta | None
    task: str | None
    why: object
    violated: bool = False


class _Watch:
    """The unanswered obligations, oldest first."""

    def __init__(self, axiom: str, bound: Bound | None, frozen: FrozenTime) -> None:
        self.axiom = axiom
        self.late: list[Late] = []
        self._bound = bound
        self._frozen = frozen
        self._asked: dict[Hashable, _Asked] = {}
        self._in_time: dict[Hashable, _Asked] = {}

    def waits_for(self, key: Hashable) -> bool:
        return key in self._asked

    def ask(
        self, key: Hashable, position: Position, tasks: int, why: object, task: str | None = None
    ) -> None:
        """Wait for an answer from here on, unless one is waited for already."""
        if key not in self._asked:
            bound = None if self._bound is None else self._bound.of(tasks)
            frozen = self._frozen.total(position.at)
            asked = _Asked(position.moment, frozen, bound, task, why)
            self._asked[key] = self._in_time[key] = asked

    def answer(self, key: Hashable, position: Position) -> timedelta | None:
        """Close an obligation; return its duration, or ``None`` if none was open."""
        asked = self._asked.pop(key, None)
        if asked is None:
            return None
        self._in_time.pop(key, None)
        latency = position.at - asked.moment.at
        if asked.bound is not None and latency > asked.bound and not asked.violated:
            frozen = self._frozen.total(position.at) - asked.frozen
            late = Late(self.axiom, asked.task, asked.moment.at, position.at, frozen)
            self.late.append(late)
        return latency

    def answer_all(self, position: Position) -> None:
        for key in list(self._asked):
            self.answer(key, position)

    def overdue(self, at: datetime) -> Iterator[Violation]:
        """Report each obligation that was not answered within its bound, once."""
        for key, asked in list(self._until(at)):
            unfrozen = (at - asked.moment.at) - (self._frozen.total(at) - asked.frozen)
            if asked.bound is not None and unfrozen > asked.bound:
                del self._in_time[key]
                asked.violated = True
                waited, most = unfrozen.total_seconds(), asked.bound.total_seconds()
                reason = f"unanswered for {waited:g} s, of at most {most:g} s; {asked.why}"
                yield Violation(self.axiom, asked.moment, asked.task, "scheduler", reason)

    def _until(self, at: datetime) -> Iterator[tuple[Hashable, _Asked]]:
        """Return the oldest obligations; the others cannot be overdue yet."""
        if self._bound is not None:
            for key, asked in self._in_time.items():
                if at - asked.moment.at <= self._bound.lag:
                    return
                yield key, asked

    def open(self) -> Iterator[Violation]:
        for asked in self._asked.values():
            yield Violation(self.axiom, asked.moment, asked.task, "inconclusive", f"{asked.why}")


class L1ObligationFulfillment:
    """Require a start, or the end of the activity, after each obligation (L1)."""

    def __init__(self, bound: Bound | None, frozen: FrozenTime) -> None:
        self.watch = _Watch("L1", bound, frozen)
        self.worst_start_latency: timedelta | None = None

    def judge(self, position: Position, state: OperationalState) -> None:
        started = {state.task_of(event) for event in position.each("RS")}
        for task in started:
            self._start(self.watch.answer(task, position))
        if state.renewed or not state.active:
            self.watch.answer_all(position)
        for task in state.swept:
            if state.obliged(task) and task not in started:
                self._ask(task, position, state)
            elif state.mode == "repaired":
                self.watch.answer(task, position)

    def _ask(self, task: Task, position: Position, state: OperationalState) -> None:
        if not self.watch.waits_for(task):
            tasks = len(state.registered or ())
            self.watch.ask(task, position, tasks, state.why(task), name_of(task))

    def _start(self, latency: timedelta | None) -> None:
        if latency is not None:
            self.worst_start_latency = max(latency, self.worst_start_latency or latency)


class L2InitializationCompletes:
    """Require the end of each initialisation, or a crash (L2)."""

    def __init__(self, bound: Bound | None, frozen: FrozenTime) -> None:
        self.watch = _Watch("L2", bound, frozen)

    def judge(self, position: Position, state: OperationalState) -> None:
        for event in position.each("IS"):
            tasks = len(event.registrations)
            self.watch.ask(event.registrations, position, tasks, "an initialisation started")
        for event in position.each("IEs", "IEf"):
            self.watch.answer(event.registrations, position)
        if position.has("Crash"):
            self.watch.answer_all(position)


class L3StopCompletes:
    """Require the end of a stop after all runs have ended, or a crash (L3)."""

    def __init__(self, bound: Bound | None, frozen: FrozenTime) -> None:
        self.watch = _Watch("L3", bound, frozen)

    def judge(self, position: Position, state: OperationalState) -> None:
        registered = state.registered or ()
        key = registered if state.mode == "letter" else None
        if state.stop_waits_for_nothing:
            why = "a stop was asked for and nothing runs"
            self.watch.ask(key, position, len(registered), why)
        if position.has("SE"):
            self.watch.answer(key, position)
        if position.has("Crash"):
            self.watch.answer_all(position)
