"""A mixin for Django's test cases."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from .. import conf
from .clock import Instant
from .schedules import (
    Between,
    assert_fires,
    assert_schedule_snapshot,
    assert_schedule_valid,
)
from .simulation import Simulation


class CronTestMixin:
    """Assertions about the declared tasks, for ``SimpleTestCase`` and its subclasses.

    ``simulate`` uses the database, so it needs a ``TestCase``.
    """

    def assertFires(
        self,
        name: str,
        *,
        between: Between,
        at: Iterable[Instant],
        tasks: object = None,
        registered_at: Instant | None = None,
    ) -> None:
        """Call ``assert_fires``."""
        __tracebackhide__ = True
        assert_fires(name, between=between, at=at, tasks=tasks, registered_at=registered_at)

    def assertScheduleValid(self, *, tasks: object = None, allow: Collection[str] = ()) -> None:
        """Call ``assert_schedule_valid``."""
        __tracebackhide__ = True
        assert_schedule_valid(tasks=tasks, allow=allow)

    def assertScheduleSnapshot(
        self, path: Path | str, *, rewrite: bool = False, tasks: object = None
    ) -> None:
        """Call ``assert_schedule_snapshot``."""
        __tracebackhide__ = True
        assert_schedule_snapshot(path, rewrite=rewrite, tasks=tasks)

    def simulate(self, start: Instant, *, tasks: object = None, **keys: Any) -> Simulation:
        """Start a simulation of the declared tasks.

        Args:
            start: the first instant.
            tasks: replaces ``SCHEDULED_TASKS``.
            keys: further arguments of ``Simulation``.
        """
        return simulated(start, tasks=tasks, **keys)


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
