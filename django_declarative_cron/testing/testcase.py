"""A mixin for Django's test cases."""

from __future__ import annotations

from typing import Any

from .. import conf
from .clock import Instant
from .schedules import assert_fires, assert_schedule_snapshot, assert_schedule_valid
from .simulation import Simulation


def simulated(start: Instant, *, tasks: object = None, **keys: Any) -> Simulation:
    """Start a simulation of the declared tasks, in the project's time zone.

    Args:
        start: the first instant.
        tasks: replaces ``SCHEDULED_TASKS``.
        keys: further arguments of ``Simulation``.
    """
    simulation = Simulation(start, **{"time_zone": conf.project_zone().key, **keys})
    simulation.initialize(conf.registrations() if tasks is None else tasks)
    return simulation


class CronTestMixin:
    """Assertions about the declared tasks, for ``SimpleTestCase`` and its subclasses.

    ``simulate`` uses the database, so it needs a ``TestCase``.
    """

    assertFires = staticmethod(assert_fires)
    assertScheduleValid = staticmethod(assert_schedule_valid)
    assertScheduleSnapshot = staticmethod(assert_schedule_snapshot)
    simulate = staticmethod(simulated)
