"""The product."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection

from django_declarative_cron import Scheduler
from django_declarative_cron.models import ScheduledTask

from ..harness.jobs import nothing
from ..harness.project import counting
from ..memory.idling import NEVER
from .restarting import Restarting


class Case(Restarting):
    """A scheduler that has no loop."""

    def register(self) -> None:
        """Initialise, and leave."""
        self.restart()
        self._scheduler.stop()
        connection.close()

    def restart(self) -> None:
        """Initialise."""
        delay = timedelta(minutes=5)
        self._scheduler = Scheduler(background=False)
        self._scheduler.initialize([(name, NEVER, nothing, delay) for name in self.names])

    def idle(self) -> int:
        """Look, long before anything is due."""
        with counting() as count:
            self._scheduler.tick()
        return count.statements

    def count(self) -> int:
        """Count the rows."""
        return ScheduledTask.objects.count()

    def close(self) -> None:
        """Stop."""
        self._scheduler.stop()
