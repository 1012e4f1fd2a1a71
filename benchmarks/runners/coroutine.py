"""Coroutines on one event loop, as many at a time as there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .handing import Handing

if TYPE_CHECKING:
    from django_declarative_cron.runtime.runners import Runner


class Case(Handing):
    """Coroutines on one event loop, as many at a time as there are."""

    callback = "tells_when_asynchronously"

    def runner(self) -> Runner:
        """Make the runner."""
        from django_declarative_cron.runtime.clock import system_clock
        from django_declarative_cron.runtime.runners.asyncio import CoroutineRunner

        return CoroutineRunner(system_clock)
