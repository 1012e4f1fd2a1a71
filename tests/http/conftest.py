"""What tests of the HTTP binding share: types to name, a deployment, a scheduler on a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_declarative_cron.testing import Simulation

from .reports import tasks as reports


@pytest.fixture(autouse=True)
def calls() -> Iterator[list[tuple[Any, ...]]]:
    """Give what the functions of ``reports`` were called with."""
    reports.calls.clear()
    yield reports.calls
    reports.calls.clear()


@pytest.fixture
def simulation(db: None) -> Iterator[Callable[..., Simulation]]:
    """Give schedulers on a virtual clock that begins at a time of 1 January 2024."""
    made: list[Simulation] = []

    def make(time: str = "10:10:30", **how: Any) -> Simulation:
        made.append(Simulation(start=f"2024-01-01T{time}Z", time_zone="UTC", **how))
        return made[-1]

    yield make
    for each in made:
        each.stop()
