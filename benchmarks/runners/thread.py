"""Threads of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .handing import WORKERS, Handing

if TYPE_CHECKING:
    from django_declarative_cron.runtime.runners import Runner


class Case(Handing):
    """Threads of this process."""

    def runner(self) -> Runner:
        """Make the runner."""
        from django_declarative_cron.runtime.clock import system_clock
        from django_declarative_cron.runtime.runners.thread import ThreadRunner

        return ThreadRunner(WORKERS, system_clock)
