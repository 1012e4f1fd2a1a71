"""Safety axioms S1 to S5: events that must never happen (004 Safety Axioms)."""

from __future__ import annotations

from collections.abc import Iterator

from ..events import Event
from ..operational import OperationalState, Task, name_of
from ..operators import AtMostOne, Moment, RSucc
from ..report import Owner, Violation
from ..trace import Position


def s1_start_safety(
    event: Event, position: Position, state: OperationalState
) -> Iterator[Violation]:
    """Require an obligation at the position before a start (S1)."""
    task = state.task_of(event)
    if not state.may_start(task):
        reason = f"started without an obligation just before: {state.why(task)}"
        yield Violation("S1", position.moment, event.task, "scheduler", reason)


class S2ConservationOfStarts:
    """Allow one successful start per due (S2): ``AtMostOne(Due_x, RSucc_x)``.

    Checked at the success, dated at the start. The first success is always allowed.
    """

    def __init__(self) -> None:
        self._dues: dict[Task, Moment] = {}
        self._succeeding: dict[Task, RSucc] = {}
        self._at_most_one: dict[Task, AtMostOne] = {}
        self._elsewhere: set[Task] = set()

    def judge(self, position: Position, state: OperationalState) -> Iterator[Violation]:
        self._note_dues(position, state)
        for event in position.each("RS"):
            self._start(event, position, state)
        for event in position.each("REs"):
            yield from self._succeed(state.task_of(event))
        for event in position.each("REf"):
            self._of(state.task_of(event)).fail()
        if position.has("Crash"):
            for task, starts in self._succeeding.items():
                if task not in self._elsewhere:
                    starts.fail()

    def _start(self, event: Event, position: Position, state: OperationalState) -> None:
        task = state.task_of(event)
        self._of(task).start(position.moment, self._dues.get(task))
        if state.is_elsewhere(event):
            self._elsewhere.add(task)
        else:
            self._elsewhere.discard(task)

    def _of(self, task: Task) -> RSucc:
        return self._succeeding.setdefault(task, RSucc())

    def _note_dues(self, position: Position, state: OperationalState) -> None:
        for registration, due in position.came.items():
            task = state.task_named(registration)
            if due is not None:
                self._dues[task] = max(due, self._dues.get(task, due))
        for event in position.each("Due"):
            if event.registration is not None:
                self._dues[state.task_of(event)] = position.moment

    def _succeed(self, task: Task) -> Iterator[Violation]:
        for moment, due in self._of(task).succeed():
            at_most_one = self._at_most_one.setdefault(task, AtMostOne())
            previous = at_most_one.last
            if not at_most_one.allows(moment, due):
                reason = f"a second success without a due since the start at {previous};"
                reason += f" newest due: {due or 'none'}"
                yield Violation("S2", moment, name_of(task), "scheduler", reason)


def s3_stop_end_consistency(
    event: Event, position: Position, state: OperationalState
) -> Iterator[Violation]:
    """Require that nothing runs when a stop returns (S3); removed tasks count.

    Repaired, runs on external workers do not count: they go on without the scheduler (R10).
    """
    for name in state.in_flight():
        yield Violation("S3", position.moment, name, "scheduler", "still runs as stop returns")


def s4_ends_follow_starts(
    event: Event, position: Position, state: OperationalState
) -> Iterator[Violation]:
    """Require a run in flight at the position before an end (S4).

    The scheduler does not cause the end of a run that it has not claimed since the last crash.
    """
    task = state.task_of(event)
    if not state.running(task):
        started = state.started(task)
        claimed = started is not None and (state.crashed is None or started > state.crashed)
        owner: Owner = "scheduler" if claimed else "recorder"
        reason = f"{event.kind} without a run in flight; newest start: {started or 'none'}"
        yield Violation("S4", position.moment, event.task, owner, reason)


def s5_registration_consistency(
    event: Event, position: Position, state: OperationalState
) -> Iterator[Violation]:
    """Require that valid lists are accepted and others are not (S5).

    Repaired, an initialisation may fail when the storage does (R9).
    """
    if event.kind == "IEs" and event.fault:
        reason = f"accepted a list that is not valid: {event.fault}"
        yield Violation("S5", position.moment, None, "scheduler", reason)
    if event.kind == "IEf" and not event.fault:
        if not event.storage_failed:
            yield Violation("S5", position.moment, None, "scheduler", "refused a valid list")
        elif state.mode == "letter":
            reason = "refused a valid list as the storage failed"
            yield Violation("S5", position.moment, None, "environment", reason)
