"""The product: one scheduler with default options, in this process."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection

from django_declarative_cron import Scheduler

from ..harness.jobs import nothing
from .idling import NEVER, Idling


class Case(Idling):
    """What is measured is a restart: the rows are there."""

    def fill(self) -> None:
        """Register, and leave."""
        self.begin()
        self.end()
        connection.close()

    def begin(self) -> None:
        """Initialise."""
        delay = timedelta(minutes=5)
        self._scheduler = Scheduler()
        self._scheduler.initialize([(name, NEVER, nothing, delay) for name in self.names])

    def end(self) -> None:
        """Stop."""
        self._scheduler.stop()
