"""Behaviour is shown with the real engine and database on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron import signals, theory
from django_declarative_cron.core.events import Event
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Simulation

from ..simulation.task_trace import task_trace

Started = Callable[..., Simulation]


@pytest.fixture
def simulation(db: None, request: pytest.FixtureRequest) -> Iterator[Started]:
    """Make simulations that start in 2024; at the end the theory judges each of them."""
    made: list[Simulation] = []

    def start(at: str, **options: Any) -> Simulation:
        made.append(Simulation(start=at if "T" in at else f"2024-01-01T{at}Z", **options))
        return made[-1]

    yield start
    if request.node.get_closest_marker("beyond_the_theory") is None:
        for sim in made:
            assert [each for each in _judged(sim) if each.owner != "inconclusive"] == []


def _judged(sim: Simulation) -> list[theory.Violation]:
    if len(sim) == 1:
        return theory.check(sim.trace())
    return [found for name in sim.task_names for found in theory.check(task_trace(sim, name))]


@pytest.fixture
def told() -> Iterator[list[Event]]:
    """Collect every event that is published, in order."""
    events: list[Event] = []

    def listen(event: Event, **_: object) -> None:
        events.append(event)

    for signal in signals.SIGNALS.values():
        signal.connect(listen)
    yield events
    for signal in signals.SIGNALS.values():
        signal.disconnect(listen)


def utc(text: str) -> datetime:
    """Read an instant; a bare time is on 2024-01-01."""
    full = text if "T" in text else f"2024-01-01T{text}"
    return datetime.fromisoformat(full).replace(tzinfo=UTC)


def names(events: list[Event]) -> list[str]:
    """Name events, without the chatter of every poll."""
    chatter = ("Poll", "Scheduler", "Leadership", "TaskScheduled", "TaskAdded", "TaskPreserved")
    found = [type(event).__name__ for event in events]
    return [name for name in found if not name.startswith(chatter)]


def of(told: list[Event], kind: type[Event]) -> list[Any]:
    """Return the events of a kind."""
    return [event for event in told if isinstance(event, kind)]


def act(sim: Simulation, note: str = "") -> Act:
    """Sign what an operator does now."""
    return Act(author="an operator", at=sim.now, note=note, author_key="7")


FIVE_MINUTES = timedelta(minutes=5)
HOURLY = "0 * * * *"
