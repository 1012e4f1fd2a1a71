"""Processes, forked from a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .handing import WORKERS, Handing

if TYPE_CHECKING:
    from django_declarative_cron.runtime.runners import Runner


class Case(Handing):
    """Processes, forked from a server."""

    kind = "process"

    def runner(self) -> Runner:
        """Make the runner."""
        from django_declarative_cron.runtime.clock import system_clock
        from django_declarative_cron.runtime.runners.process import ProcessRunner

        return ProcessRunner(WORKERS, system_clock)
