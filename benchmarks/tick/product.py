"""The product, on a clock that is moved by hand; callbacks are ended by hand, too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django_declarative_cron import Scheduler
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime.outcome import succeeded
from django_declarative_cron.testing.clock import ManualClock
from django_declarative_cron.testing.jobs import Queue

from ..harness.declared import names
from ..harness.jobs import nothing
from ..harness.project import counting
from . import DUE
from .passing import Passing

START = datetime(2024, 1, 1, 10, 59, 30, tzinfo=UTC)
DELAY = timedelta(minutes=5)
NEVER = "0 0 29 2 *"


def _minutes(first: int) -> str:
    return ",".join(str(minute) for minute in range(first, 60, len(DUE)))


class Case(Passing):
    """Each number of due tasks has minutes of its own: tasks enough are due then."""

    most_due = DUE[-1]
    records = True
    size = 0

    def prepare(self, size: int) -> None:
        """Register so many tasks.

        Args:
            size: how many.
        """
        self.size = size
        self._clock, self._queue, self._done = ManualClock(START), Queue(), 0
        self._scheduler = Scheduler(background=False, clock=self._clock, runner=self._queue)
        self._scheduler.initialize(
            [
                (name, cron, nothing, DELAY)
                for name, cron in zip(names(size), self._crons(size), strict=True)
            ]
        )
        self._scheduler.tick()

    def make_idle(self) -> None:
        """Go on by ten seconds."""
        self._clock.advance(self._clock.now() + timedelta(seconds=10))
        self._scheduler.beat()

    def idle(self) -> int:
        """Look again, long before the next minute."""
        self._clock.advance(self._clock.now() + timedelta(milliseconds=10))
        return self._tick()

    def _tick(self) -> int:
        with counting() as count:
            self._scheduler.tick()
        return count.statements

    def make_due(self, number: int) -> None:
        """Go on to a minute at which so many are due.

        Args:
            number: how many.
        """
        at = self._clock.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
        while at.minute % len(DUE) != DUE.index(number):
            at += timedelta(minutes=1)
        # A loop looks every second; what it does where nothing is near is not this pass' work.
        self._clock.advance(at - timedelta(seconds=5))
        self._scheduler.tick()
        self._clock.advance(at - timedelta(seconds=1))
        while self._queue.waiting:
            self.end_runs()
            self._scheduler.tick()
        self._scheduler.beat()
        # What the minutes between have brought is not to be counted.
        self._scheduler.tick()
        self.end_runs()
        self._scheduler.tick()
        self._before = TaskRun.objects.filter(outcome="succeeded").count()
        self._clock.advance(at)

    def start(self) -> int:
        """Do the pass that starts them."""
        return self._tick()

    def end_runs(self) -> None:
        """Let every run that was started end well."""
        for work in self._queue.waiting:
            work.done(succeeded(work, self._clock.now(), 0.0))
        self._queue.waiting.clear()

    def record(self) -> int:
        """Do the pass that writes the results."""
        return self.start()

    def right(self) -> int:
        """Count the runs that are recorded as succeeded since."""
        return TaskRun.objects.filter(outcome="succeeded").count() - self._before

    @staticmethod
    def _crons(size: int) -> list[str]:
        crons = [f"{_minutes(n)} * * * *" for n, due in enumerate(DUE) for _ in range(due)]
        return [*crons, *[NEVER] * size][:size] if size > sum(DUE) else _few(size)


def _few(size: int) -> list[str]:
    """Give the schedules of a set that has fewer tasks than are due at all of the minutes."""
    counts = [due for due in DUE if due <= size]
    found = []
    for position in range(size):
        due_at = [_minutes(n) for n, due in enumerate(counts) if position < due]
        found.append(f"{','.join(due_at)} * * * *" if due_at else NEVER)
    return found
