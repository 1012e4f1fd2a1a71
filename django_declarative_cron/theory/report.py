"""The results of the checker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from .operators import Moment

Mode = Literal["letter", "repaired"]
Owner = Literal["scheduler", "environment", "recorder", "conditional", "inconclusive"]


class Violation(NamedTuple):
    """A broken axiom.

    Args:
        axiom: S1 to S5, L1 to L3, EA1 to EA6.
        moment: its instant and position in the trace: for S2 of the second start, for L1 to L3
            of the beginning of the obligation.
        task: the task, if any.
        owner: ``scheduler``, ``environment`` or ``recorder``; ``conditional`` if it may follow from
            an earlier fault of the environment; ``inconclusive`` if the trace ends too early.
        explanation: the reason, for the reader.
        mode: the reading of the theory.
    """

    axiom: str
    moment: Moment
    task: str | None
    owner: Owner
    explanation: str
    mode: Mode = "repaired"

    @property
    def at(self) -> datetime:
        """Return its instant."""
        return self.moment.at

    @property
    def position(self) -> int:
        """Return its position in the trace."""
        return self.moment.position


@dataclass(frozen=True, slots=True)
class Late:
    """An answer that came late because of the environment; no violation.

    Args:
        axiom: L1, L2 or L3.
        task: the task concerned, if any.
        since: the start of the obligation.
        at: when it came.
        frozen: how much of that time was frozen.
    """

    axiom: str
    task: str | None
    since: datetime
    at: datetime
    frozen: timedelta

    @property
    def latency(self) -> timedelta:
        """Return the total time."""
        return self.at - self.since


@dataclass(frozen=True, slots=True)
class Verdict:
    """All results for a trace.

    Args:
        mode: the reading.
        violations: in the order of the trace.
        open_obligations: unanswered when the trace ended; owner ``inconclusive``.
        late: responses that were late because of the environment.
        worst_start_latency: the longest time from an obligation to its start, ``None`` without
            any. The specifications' one minute is a target, no axiom.
        starts: number of runs that started.
        checked_starts: how many of them are of tasks that the theory governs.
        ungoverned: tasks with an overlap policy other than ``coalesce``, with a retry policy, or
            with excluded occurrences; of them only the ends that a stop waits for were checked.
    """

    mode: Mode
    violations: tuple[Violation, ...]
    open_obligations: tuple[Violation, ...]
    late: tuple[Late, ...]
    worst_start_latency: timedelta | None
    starts: int
    checked_starts: int
    ungoverned: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Return whether there is no violation."""
        return not self.violations
