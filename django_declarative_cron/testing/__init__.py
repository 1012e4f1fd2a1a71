"""Test schedules: the declarations alone, or with the real engine on a virtual clock.

>>> assert_schedule_valid()
>>> assert_fires("a", between=("2024-01-01", "2024-01-02"), at=["2024-01-01 07:00"])

>>> sim = Simulation(start="2024-01-01T10:00:30Z")
>>> job = sim.job(outcomes=["fail", "ok"])
>>> sim.initialize([("a", "0 * * * *", job, timedelta(minutes=5))])
>>> sim.advance_to("2024-01-01T11:30Z")
>>> sim.starts("a")  # 11:00, and the retry at 11:05

Nothing here starts a thread or waits: only the test advances time. The names are imported
on first access, so that pytest can load its plugin before Django is set up.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .callables import Job, SimulatedCrash, SimulatedFailure
    from .clock import Instant, ManualClock
    from .http import post_task
    from .schedules import (
        assert_fires,
        assert_schedule_snapshot,
        assert_schedule_valid,
        occurrences,
    )
    from .simulation import Simulation
    from .testcase import CronTestMixin
    from .trace import Record

__all__ = [
    "CronTestMixin",
    "Instant",
    "Job",
    "ManualClock",
    "Record",
    "SimulatedCrash",
    "SimulatedFailure",
    "Simulation",
    "assert_fires",
    "assert_schedule_snapshot",
    "assert_schedule_valid",
    "occurrences",
    "post_task",
]

_HOMES = {
    "CronTestMixin": ".testcase",
    "Instant": ".clock",
    "Job": ".callables",
    "ManualClock": ".clock",
    "Record": ".trace",
    "SimulatedCrash": ".callables",
    "SimulatedFailure": ".callables",
    "Simulation": ".simulation",
    "assert_fires": ".schedules",
    "assert_schedule_snapshot": ".schedules",
    "assert_schedule_valid": ".schedules",
    "occurrences": ".schedules",
    "post_task": ".http",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
