"""What is due every second, when writing takes its time: the starts of each second keep coming.

Counted on the virtual clock, on which nothing takes time but batches of results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime import executor
from django_declarative_cron.runtime.outcome import succeeded
from django_declarative_cron.runtime.work import Work
from django_declarative_cron.store.results import Recorded, Result
from django_declarative_cron.testing import ManualClock, Simulation
from django_declarative_cron.testing.callables import Queue

pytestmark = pytest.mark.django_db

TASKS = 24
SECONDS = 12


class Inline(Queue):
    """Call what was claimed at once; nothing takes time."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def submit(self, work: Work) -> None:
        work.done(succeeded(work, self._clock.now(), 0.0))


@dataclass
class Counted:
    """What a busy scheduler did.

    Args:
        batches: how many results each batch had.
        passes: how often it looked.
        left: results that still wait at the end.
    """

    batches: list[int] = field(default_factory=list)
    passes: int = 0
    left: int = 0


def busy(monkeypatch: pytest.MonkeyPatch, policy: str, takes: timedelta) -> Counted:
    """Let a scheduler run whose tasks are due every second."""
    counted, sim = Counted(), Simulation(start="2024-01-01T12:00:00Z", time_zone="UTC")
    real = executor.results.record

    def record(member: Any, batch: Sequence[Result], now: datetime) -> Recorded:
        counted.batches.append(len(batch))
        sim.clock.advance(sim.now + takes)
        return real(member, batch, now)

    monkeypatch.setattr(executor, "BATCH", TASKS)
    monkeypatch.setattr(executor.results, "record", record)
    entry = {"cron": "* * * * * *", "callback": "builtins.print", "overlap_policy": policy}
    scheduler = sim.new_scheduler(Inline(sim.clock))
    scheduler.initialize([{**entry, "name": f"t{n}"} for n in range(TASKS)])
    end = sim.now + timedelta(seconds=SECONDS)
    while sim.now < end:
        counted.passes += 1
        wake = scheduler.tick(sim.now)
        sim.clock.advance(max(wake or sim.now + timedelta(seconds=1), sim.now))
    counted.left = scheduler.unrecorded
    scheduler.stop()
    return counted


@pytest.mark.parametrize("policy", ["skip", "allow", "enqueue"])
def test_every_second_is_served_although_writing_takes_a_third_of_one(
    monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    counted = busy(monkeypatch, policy, timedelta(milliseconds=300))
    assert TaskRun.objects.filter(outcome__in=("running", "succeeded")).count() == TASKS * SECONDS
    assert not TaskRun.objects.exclude(outcome__in=("running", "succeeded")).exists()
    assert len(counted.batches) <= 2 * SECONDS
    assert counted.passes <= 2 * SECONDS
    assert counted.left <= TASKS
