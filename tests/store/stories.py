"""Histories made by the real engine on a virtual clock, and what the judge says of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django_declarative_cron import theory
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.store.trace_builder import History
from django_declarative_cron.store.trace_reading import read
from django_declarative_cron.testing import Simulation
from django_declarative_cron.theory import Verdict

LEASE = timedelta(seconds=15)
FIVE_MINUTES = timedelta(minutes=5)
HOURLY = "0 * * * *"
MINUTELY = "* * * * *"


def utc(text: str) -> datetime:
    """Read an instant; a bare time is on 2024-01-01."""
    return datetime.fromisoformat(text if "T" in text else f"2024-01-01T{text}").replace(tzinfo=UTC)


def start(at: str = "10:00:30", **options: Any) -> Simulation:
    return Simulation(utc(at), **options)


def act(sim: Simulation) -> Act:
    return Act(author="an operator", at=sim.now)


@dataclass(frozen=True)
class Judged:
    """A history that was told and judged."""

    told: History
    records: list[dict[str, Any]]
    verdict: Verdict

    @property
    def events(self) -> list[str]:
        """Name the records, without the registrations."""
        return [" ".join(filter(None, (r["event"], r.get("task")))) for r in self.records]

    @property
    def broken(self) -> list[tuple[str, str | None]]:
        return [(each.axiom, each.task) for each in self.verdict.violations]


def judged(sim: Simulation, since: str | None = None, *, living: bool = True) -> Judged:
    """Tell and judge the rows of a simulation; the instances that live give a sign of life."""
    for instance in instances(sim):
        if living and instance.scheduler is not None:
            instance.scheduler.beat()
    told = read(
        "default",
        "default",
        lease=LEASE,
        until=sim.now,
        since=None if since is None else utc(since),
        database_time=sim.clock.database_time(),
    )
    assert told is not None
    records = list(told.records())
    return Judged(told, records, theory.judge(records, pulses="made", set_back="hold"))


def instances(sim: Simulation) -> Sequence[Any]:
    return sim._instances
