"""Apply every axiom at every position of a trace, in one pass.

Violations that may follow from an earlier fault of the environment are ``conditional``: a broken
position (EA1, EA3) may affect everything, a wrong freeze (EA2) the liveness, an impossible end
(EA6, S4 by a recorder) everything about its task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypedDict, Unpack

from .axioms import environment as ea
from .axioms import liveness, safety
from .derived_events import Schedules, schedule_of
from .events import Event, Kind, Record
from .operational import OperationalState
from .operators import FrozenTime
from .report import Late, Mode, Verdict, Violation
from .trace import Position, Pulses, SetBack, positions

_BOUND: Final = liveness.Bound()
EventAxioms = Mapping[
    Kind, tuple[Callable[[Event, Position, OperationalState], Iterable[Violation]], ...]
]
BEFORE: Final[EventAxioms] = {
    "RS": (safety.s1_start_safety,),
    "REs": (safety.s4_ends_follow_starts,),
    "REf": (safety.s4_ends_follow_starts,),
}
AFTER: Final[EventAxioms] = {
    "REs": (ea.ea6_crash_end_consistency,),
    "REf": (ea.ea6_crash_end_consistency,),
    "SE": (safety.s3_stop_end_consistency,),
    "IEs": (safety.s5_registration_consistency,),
    "IEf": (safety.s5_registration_consistency,),
}
READINGS: Final[dict[Mode, Callable[[], OperationalState]]] = {"repaired": OperationalState}


class Options(TypedDict, total=False):
    """Options for checking a trace.

    Args:
        lag: the time that L1 to L3 allow for every response, in time not frozen.
        per_task: the additional time for each task of the list.
        schedules: finds the schedule of a registration; by default from its cron expression.
        pulses: whether the trace states its dues, as described in ``trace``.
        set_back: ``hold`` accepts records from a clock that was set back.
    """

    lag: timedelta
    per_task: timedelta
    schedules: Schedules
    pulses: Pulses
    set_back: SetBack


def check(
    trace: Iterable[Record], mode: Mode = "repaired", **options: Unpack[Options]
) -> list[Violation]:
    """Return the violations of a trace; obligations open at its end have ``inconclusive`` owners.

    ``judge`` returns both separately, and further figures.

    Args:
        trace: event records as described in ``events``, oldest first.
        mode: the reading of the theory; ``repaired`` is the satisfiable one.
        options: see ``Options``.

    Raises:
        TraceError: a record is invalid or out of order.
        ValueError: the mode is unknown.

    Source: 004 Scheduler Axioms, 004 Environment Axioms.
    """
    verdict = judge(trace, mode, **options)
    return sorted([*verdict.violations, *verdict.open_obligations], key=_in_order)


def judge(
    trace: Iterable[Record],
    mode: Mode = "repaired",
    *,
    lag: timedelta = _BOUND.lag,
    per_task: timedelta = _BOUND.per_task,
    schedules: Schedules = schedule_of,
    pulses: Pulses = "auto",
    set_back: SetBack = "refuse",
) -> Verdict:
    """Return the whole verdict on a trace; arguments and errors are those of ``check``.

    With ``pulses`` given the trace is read once and not kept: memory grows with the tasks, not
    with the trace.
    """
    if mode not in READINGS:
        raise ValueError(f"mode must be {' or '.join(READINGS)}, got {mode!r}")
    judging = _Checker(READINGS[mode](), liveness.Bound(lag, per_task))
    for position in positions(trace, schedules=schedules, pulses=pulses, set_back=set_back):
        judging.step(position)
    return judging.verdict()


def _in_order(violation: Violation) -> tuple[int, str, str]:
    return (violation.position, violation.axiom, violation.task or "")


@dataclass(slots=True)
class _Faults:
    """The environment axioms violated so far, and the possible consequences."""

    everything: bool = False
    liveness: bool = False
    tasks: frozenset[str] = frozenset()

    def note(self, violation: Violation) -> None:
        if violation.axiom in ("EA1", "EA3"):
            self.everything = True
        elif violation.axiom == "EA2":
            self.liveness = True
        elif violation.owner == "recorder" and violation.task is not None:
            self.tasks |= {violation.task}

    def may_cause(self, violation: Violation) -> bool:
        lively = self.liveness and violation.axiom.startswith("L")
        return self.everything or lively or violation.task in self.tasks


class _Checker:
    def __init__(self, state: OperationalState, bound: liveness.Bound) -> None:
        self._state = state
        self._frozen = FrozenTime()
        bounded = bound if state.mode == "repaired" else None
        self._s2 = safety.S2ConservationOfStarts()
        self._l1 = liveness.L1ObligationFulfillment(bounded, self._frozen)
        self._l2 = liveness.L2InitializationCompletes(bounded, self._frozen)
        self._l3 = liveness.L3StopCompletes(bounded, self._frozen)
        self._watches = (self._l1.watch, self._l2.watch, self._l3.watch)
        self._faults = _Faults()
        self._violations: list[Violation] = []
        self._starts = self._checked_starts = 0
        self._ungoverned: dict[str, None] = {}

    def step(self, position: Position) -> None:
        """Check the next position: first its events, then the state after it."""
        self._freeze(position)
        self._object(self._environment(position))
        for watch in self._watches:
            self._object(watch.overdue(position.at))
        self._object_to_events(position, BEFORE)
        self._state.step(position)
        self._object_to_events(position, AFTER)
        self._object(self._s2.judge(position, self._state))
        for axiom in (self._l1, self._l2, self._l3):
            axiom.judge(position, self._state)
        self._count(position)

    def _freeze(self, position: Position) -> None:
        for event in position.each("Freeze"):
            if event.until is not None:
                self._frozen.freeze(position.at, event.until)

    def _environment(self, position: Position) -> Iterator[Violation]:
        yield from ea.ea1_busy_crashing(position)
        for violation in ea.ea2_actions_require_work(position, self._frozen, self._state):
            yield violation
            self._frozen.thaw(position.at)
        yield from ea.ea3_no_simultaneous_actions(position)
        yield from ea.ea4_unlimited_freeze(position)
        yield from ea.ea5_unlimited_dues(position)

    def _object_to_events(self, position: Position, axioms: EventAxioms) -> None:
        for event in position.events:
            if event.governed:
                for axiom in axioms.get(event.kind, ()):
                    self._object(axiom(event, position, self._state))

    def _object(self, violations: Iterable[Violation]) -> None:
        for violation in violations:
            if violation.owner == "scheduler" and self._faults.may_cause(violation):
                violation = violation._replace(owner="conditional")
            self._faults.note(violation)
            self._violations.append(violation._replace(mode=self._state.mode))

    def _count(self, position: Position) -> None:
        self._starts += sum(event.kind == "RS" for event in position.events)
        self._checked_starts += len(position.each("RS"))
        for registration in position.came:
            if not registration.governed:
                self._ungoverned[registration.name] = None

    def verdict(self) -> Verdict:
        late: list[Late] = [late for watch in self._watches for late in watch.late]
        still_open = [
            each._replace(mode=self._state.mode) for watch in self._watches for each in watch.open()
        ]
        return Verdict(
            mode=self._state.mode,
            violations=tuple(sorted(self._violations, key=_in_order)),
            open_obligations=tuple(sorted(still_open, key=_in_order)),
            late=tuple(sorted(late, key=lambda each: (each.at, each.axiom))),
            worst_start_latency=self._l1.worst_start_latency,
            starts=self._starts,
            checked_starts=self._checked_starts,
            ungoverned=tuple(self._ungoverned),
        )
