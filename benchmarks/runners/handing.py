"""A runner of the product by itself, as an engine hands runs to it; no database is asked."""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import django
from django.apps import apps

from .running import Calling

if TYPE_CHECKING:
    from django_declarative_cron.runtime.runners import Runner
    from django_declarative_cron.store.results import Result

CALLBACKS = "benchmarks.runners.callbacks"
PATIENCE = 60.0
WORKERS = 10
"""As many as a scheduler has by default."""


class Handing(Calling):
    """A runner with as many workers as a scheduler has by default."""

    callback = "tells_when"
    kind = "thread"

    def prepare(self, size: int) -> None:
        """Begin the runner.

        Args:
            size: the number of runs.
        """
        super().prepare(size)
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.runners.settings")
        if not apps.ready:
            django.setup()
        from django_declarative_cron import conf

        item = {"name": "t", "cron": "0 0 29 2 *", "callback": f"{CALLBACKS}.{self.callback}"}
        declarations = conf.declarations([{**item, "runner": self.kind}])
        (self._declaration,) = declarations
        self._runner = self.runner()
        self._runner.prepare(declarations)

    @abstractmethod
    def runner(self) -> Runner:
        """Make the runner."""

    def one(self) -> float | None:
        """Hand one run over."""
        over = threading.Event()
        ended: list[Result] = []

        def done(result: Result) -> None:
            ended.append(result)
            over.set()

        self._hand_over(done)
        over.wait(PATIENCE)
        return ended[0].value if ended and ended[0].succeeded else None

    def many(self) -> int:
        """Hand all of them over; the runner calls as many at a time as it has workers."""
        left = threading.Semaphore(0)
        ended: list[bool] = []

        def done(result: Result) -> None:
            ended.append(result.succeeded)
            left.release()

        for _ in range(self.size):
            self._hand_over(done)
        for _ in range(self.size):
            left.acquire(timeout=PATIENCE)
        return sum(ended)

    def close(self) -> None:
        """End the runner."""
        self._runner.close()

    def _hand_over(self, done: Callable[[Result], None]) -> None:
        from django_declarative_cron import Run
        from django_declarative_cron.runtime.work import Work

        now = datetime.now(UTC)
        run = Run("t", now, now, 1, "due", "UTC", threading.Event())
        self._runner.submit(
            Work(1, run, self._declaration.target, done, declaration=self._declaration)
        )
