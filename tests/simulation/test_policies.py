"""Stories of tasks with overlap policies, made from seeds; their rules are held at each step.

The theory is silent about them, so these are their own: nothing runs beside itself where it may
not, every occurrence has a row and only one, what waits keeps its order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection

from django_declarative_cron.core.overlap import POLICIES
from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.cron import parse
from django_declarative_cron.models import SchedulerState, TaskRun
from django_declarative_cron.store import operator_actions
from django_declarative_cron.testing import Simulation
from django_declarative_cron.testing.callables import Job

from ..effort import IS_COMPLETE

CRONS = ("*/5 * * * *", "*/7 * * * *", "@every 9m", "0,1 * * * *", "0 */3 * * * *")
DURATIONS = (0, 0, 20, 130, 400, 1000)
RETRIES: tuple[dict[str, Any], ...] = (
    {},
    {"retry_delay": timedelta(minutes=2)},
    {"options": {"retry": {"max_attempts": 2, "initial_interval": "PT1M"}}},
)
TICK = timedelta(microseconds=1)

pytestmark = pytest.mark.django_db


class Story:
    """One task, and what happens to it."""

    def __init__(self, policy: str, seed: int) -> None:
        self.chance = Random(f"{policy} {seed}")
        self.policy = policy
        # One test may play several stories.
        SchedulerState.objects.all().delete()
        self.sim = Simulation("2024-01-01T10:00:30Z")
        self.job: Job = self.sim.job(["ok"])
        self.cron = self.chance.choice(CRONS)
        self.retry = self.chance.choice(RETRIES)
        self.registered = self.sim.now
        self.is_up = True
        self.said: list[str] = []

    @property
    def tasks(self) -> list[dict[str, Any]]:
        entry = {"name": "t", "cron": self.cron, "callback": self.job, **self.retry}
        return [{**entry, "overlap_policy": self.policy}]

    def play(self) -> None:
        self.sim.initialize(self.tasks)
        for _ in range(14):
            step = self.chance.choice((*(["advance"] * 5), "leap", "stop", "crash", "people"))
            self.said.append(step)
            getattr(self, step)()
            assert list(self.faults()) == [], (self.policy, self.cron, self.said)

    def advance(self) -> None:
        self.job.duration = timedelta(seconds=self.chance.choice(DURATIONS))
        self.job.outcomes = [self.chance.choice(("ok", "ok", "fail"))]
        self._advance(self.chance.choice((60, 301, 900, 2400)))

    def _advance(self, seconds: int) -> None:
        self.sim.advance_to((self.sim.now + timedelta(seconds=seconds)).isoformat())

    def leap(self) -> None:
        by = timedelta(seconds=self.chance.choice((61, 1000, 9000)))
        self.sim.jump_to((self.sim.now + by).isoformat())

    def stop(self) -> None:
        self.sim.stop()
        self.leap()
        self.sim.initialize(self.tasks)

    def crash(self) -> None:
        self.sim.crash()
        self.leap()
        self.sim.initialize(self.tasks)

    def people(self) -> None:
        act = operator_actions.Act("ada", self.sim.now)
        match self.chance.choice(("pause", "run", "clear")):
            case "pause":
                operator_actions.pause(["t"], act)
                self._advance(700)
                operator_actions.resume(["t"], operator_actions.Act("ada", self.sim.now))
            case "run":
                operator_actions.request_run(["t"], act)
            case "clear":
                operator_actions.clear_retry(["t"], act)
        self._advance(120)

    # --- what holds ---

    def faults(self) -> Iterator[str]:
        runs = self.sim.runs("t")
        yield from self._beside(runs)
        yield from self._unaccounted(runs)
        yield from self._out_of_order(runs)
        yield from self._row(runs)

    def _beside(self, runs: list[TaskRun]) -> Iterator[str]:
        spans = [
            (run.started_at, run.finished_at or self.sim.now)
            for run in runs
            if run.started_at is not None
        ]
        if self.policy in ("allow", "cancel_previous"):
            return
        for (_, end), (start, _) in zip(sorted(spans), sorted(spans)[1:], strict=False):
            if start < end:
                yield f"two runs at {start}"

    def _unaccounted(self, runs: list[TaskRun]) -> Iterator[str]:
        schedule = Schedule(parse(self.cron, "ojs"), ZoneInfo("UTC")).anchored(self.registered)
        told: Counter[datetime] = Counter()
        for run in runs:
            if run.reason in ("manual", "boot") or run.attempt > 1:
                continue
            if run.outcome not in ("skipped", "missed"):
                told[run.scheduled_for] += 1
                continue
            first = run.scheduled_from or run.scheduled_for
            covered = _between(schedule, first - TICK, run.scheduled_for)
            if len(covered) != run.count:
                yield f"{run.reason} counts {run.count}, the schedule {len(covered)}"
            told.update(covered)
        mark = self.sim.task("t").discharged_at or self.registered
        for occurrence in _between(schedule, self.registered, mark):
            # A retry that meets an occurrence serves it, and a restart may.
            served = {run.scheduled_for for run in runs}
            if told[occurrence] > 1 or (not told[occurrence] and occurrence not in served):
                yield f"{occurrence} has {told[occurrence]} rows"

    def _out_of_order(self, runs: list[TaskRun]) -> Iterator[str]:
        if self.policy != "enqueue":
            return
        firsts = [
            run for run in runs if run.attempt == 1 and run.reason == "due" and run.started_at
        ]
        in_order = sorted(firsts, key=lambda run: run.started_at or self.registered)
        dates = [run.scheduled_for for run in in_order]
        if dates != sorted(dates):
            yield f"out of order: {dates}"

    def _row(self, runs: list[TaskRun]) -> Iterator[str]:
        task = self.sim.task("t")
        waiting = sum(run.outcome == "waiting" for run in runs)
        running = [run.pk for run in runs if run.outcome == "running"]
        if task.waiting != waiting:
            yield f"the row says {task.waiting} wait, {waiting} do"
        if task.running_run != (max(running) if running else None) and self.policy != "enqueue":
            yield f"the row names run {task.running_run}, there go on {running}"
        if self.policy == "enqueue" and [task.running_run] != (running or [None]):
            yield f"the row names run {task.running_run}, there goes on {running}"
        if task.broken_reason:
            yield task.broken_reason
        for run in runs:
            if (run.running_slot is not None) != (run.outcome in ("running", "waiting")):
                yield f"run {run.pk} is {run.outcome} and holds {run.running_slot!r}"


def _between(schedule: Schedule, after: datetime, until: datetime) -> list[datetime]:
    found = []
    for occurrence in schedule.upcoming(after):
        if occurrence > until:
            break
        found.append(occurrence)
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("policy", POLICIES)
def test_a_story_goes_as_its_policy_says(policy: str, seed: int) -> None:
    Story(policy, seed).play()


# Each database plays stories that the others do not.
_FURTHER = {
    "sqlite": range(2, 8 if IS_COMPLETE else 5),
    "postgresql": range(8, 11),
    "mysql": range(11, 14),
}


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_many_stories_go_as_their_policies_say(policy: str) -> None:
    for seed in _FURTHER[connection.vendor]:
        Story(policy, seed).play()
