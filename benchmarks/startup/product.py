"""The product."""

from __future__ import annotations

from datetime import timedelta

from django_declarative_cron import Scheduler
from django_declarative_cron.models import (
    RegistrationPart,
    RegistrationSet,
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)

from ..harness.jobs import nothing
from ..harness.project import counting
from ..harness.rows import empty, versions
from .deploying import Deploying

DELAY = timedelta(minutes=5)


class Case(Deploying):
    """Initialise a scheduler that has no loop."""

    def clear(self) -> None:
        """Let nothing be declared."""
        empty(
            TaskRun,
            ScheduledTask,
            RegistrationPart,
            RegistrationSet,
            SchedulerInstance,
            SchedulerState,
        )

    def declare(self, names: list[str], crons: list[str]) -> int:
        """Understand and register the tasks.

        Args:
            names: of the tasks.
            crons: their schedules.
        """
        self._scheduler = Scheduler(background=False)
        with counting() as count:
            self._scheduler.initialize(
                [(name, cron, nothing, DELAY) for name, cron in zip(names, crons, strict=True)]
            )
        return count.statements

    def leave(self) -> None:
        """Stop, as a process does that is deployed anew."""
        self._scheduler.stop()

    def rows(self) -> dict[object, object]:
        """Give the scheduled tasks."""
        return versions(ScheduledTask)
