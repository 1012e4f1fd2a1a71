"""Scenarios are played by the real engine and database on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron import signals, theory
from django_declarative_cron.core.events import Event
from django_declarative_cron.runtime.scheduler import Scheduler
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Job, Simulation

from ..simulation.judging import task_trace
from .observed import utc

Start = Callable[..., Simulation]

SECOND, FIVE_MINUTES = timedelta(seconds=1), timedelta(minutes=5)
HALF_AN_HOUR, HOUR = timedelta(minutes=30), timedelta(hours=1)
MINUTELY, HOURLY, DAILY = "* * * * *", "0 * * * *", "0 10 * * *"


@pytest.fixture
def start(db: None, request: pytest.FixtureRequest) -> Iterator[Start]:
    """Start simulations; at the end the theory judges each of them."""
    made: list[Simulation] = []

    def begin(at: str | datetime, *tasks: object, **options: Any) -> Simulation:
        made.append(Simulation(utc(at) if isinstance(at, str) else at, **options))
        if tasks:
            made[-1].initialize(list(tasks))
        return made[-1]

    yield begin
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


# --- what is declared and done ---


def task(
    name: str = "t",
    cron: str = HOURLY,
    outcomes: str | Sequence[str | BaseException] | Job = "ok",
    lasts: timedelta = timedelta(0),
    delay: timedelta = FIVE_MINUTES,
) -> tuple[Any, ...]:
    """Declare a task as a tuple: in the POSIX dialect, by the rules of the theory."""
    return (name, cron, job(outcomes, lasts), delay)


def entry(
    name: str = "t",
    cron: str = HOURLY,
    outcomes: str | Sequence[str | BaseException] | Job = "ok",
    lasts: timedelta = timedelta(0),
    **keys: Any,
) -> dict[str, Any]:
    """Declare a task by keys, with the defaults of OJS."""
    return {"name": name, "cron": cron, "callback": job(outcomes, lasts), **keys}


def governed(*args: Any, **keys: Any) -> dict[str, Any]:
    """Declare a task by keys, with the policies by which the theory judges."""
    return entry(*args, **{"overlap_policy": "coalesce", "retry_delay": FIVE_MINUTES, **keys})


def job(
    outcomes: str | Sequence[str | BaseException] | Job = "ok", lasts: timedelta = timedelta(0)
) -> Job:
    """Make a callback; words name the outcomes of its runs."""
    if isinstance(outcomes, Job):
        return outcomes
    return Job(outcomes.split() if isinstance(outcomes, str) else outcomes, lasts)


def act(sim: Simulation, note: str = "") -> Act:
    """Sign an operator action of now."""
    return Act(author="an operator", at=sim.now, note=note, author_key="7")


def restart(sim: Simulation, *tasks: object, at: str | None = None) -> None:
    """Crash, let the time of an absence pass, and initialise again."""
    sim.crash()
    if at is not None:
        sim.jump_to(utc(at))
    sim.initialize(list(tasks))


def scheduler_of(sim: Simulation, index: int = 0) -> Scheduler:
    scheduler = sim[index].scheduler
    assert scheduler is not None
    return scheduler
