"""Axioms EA1 to EA6 about the environment; a violation makes a trace inadmissible.

In practice the author of the trace violates them (004 Environment Axioms).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..events import Event
from ..operational import OperationalState
from ..operators import FrozenTime
from ..report import Violation
from ..trace import Position


def ea1_busy_crashing(position: Position) -> Iterator[Violation]:
    """Require that a crash shares its position with no action (EA1)."""
    if position.has("Crash") and position.actions:
        reason = f"a crash together with {_kinds(position)}"
        yield Violation("EA1", position.moment, None, "recorder", reason)


def ea2_actions_require_work(
    position: Position, frozen: FrozenTime, state: OperationalState
) -> Iterator[Violation]:
    """Require that there is no action inside a freeze (EA2); an action disproves the freeze.

    Repaired, an initialisation may fail inside (R9).
    """
    if not frozen.covers(position.at):
        return
    allowed = {"IEf"} if state.mode == "repaired" else set()
    acting = [event for event in position.actions if event.kind not in allowed]
    if acting:
        reason = f"{_kinds(position)} inside a freeze"
        yield Violation("EA2", position.moment, acting[0].task, "recorder", reason)


def ea3_no_simultaneous_actions(position: Position) -> Iterator[Violation]:
    """Require at most one action per position (EA3)."""
    if len(position.events) > 1 and len(position.actions) > 1:
        reason = f"{_kinds(position)} at one position"
        yield Violation("EA3", position.moment, None, "recorder", reason)


def ea4_unlimited_freeze(position: Position) -> Iterator[Violation]:
    """Report nothing: no finite trace shows or refutes endless freezing (EA4)."""
    yield from ()


def ea5_unlimited_dues(position: Position) -> Iterator[Violation]:
    """Require that a task that was due once becomes due again (EA5)."""
    for registration in position.exhausted:
        reason = f"{registration.cron!r} was due and never is again"
        yield Violation("EA5", position.moment, registration.name, "environment", reason)


def ea6_crash_end_consistency(
    event: Event, position: Position, state: OperationalState
) -> Iterator[Violation]:
    """Require a start between a crash and the next end (EA6).

    Repaired, a worker outlives the scheduler's crash (R10).
    """
    if state.is_elsewhere(event):
        return
    started = state.started(state.task_of(event))
    if state.crashed is not None and (started is None or started < state.crashed):
        reason = f"{event.kind} after the crash at {state.crashed} without a start since"
        yield Violation("EA6", position.moment, event.task, "recorder", reason)


def _kinds(position: Position) -> str:
    named = [f"{event.kind} {event.task or ''}".strip() for event in position.actions]
    return " and ".join(named)
