"""Test schedules with the real engine and database on a virtual clock.

>>> sim = Simulation(start="2024-01-01T10:00:30Z")
>>> job = sim.job(outcomes=["fail", "ok"])
>>> sim.initialize([("a", "0 * * * *", job, timedelta(minutes=5))])
>>> sim.advance_to("2024-01-01T11:30Z")
>>> sim.starts("a")  # 11:00, and the retry at 11:05

Nothing here starts a thread or waits: time passes when a test says so.
"""

from .clock import Instant, ManualClock
from .jobs import Job, SimulatedCrash, SimulatedFailure
from .simulation import Simulation
from .trace import Record

__all__ = [
    "Instant",
    "Job",
    "ManualClock",
    "Record",
    "SimulatedCrash",
    "SimulatedFailure",
    "Simulation",
]
