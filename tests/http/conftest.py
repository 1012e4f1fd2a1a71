"""Fixtures of the HTTP binding: task types, callers, a scheduler on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import cache

from django_declarative_cron.core.http_api import Right
from django_declarative_cron.http import throttling
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.store import access_tokens
from django_declarative_cron.testing import Simulation

from .client import Caller
from .reports import tasks as reports

NOW = 1_800_000_012.5
"""12.5 seconds after the start of a minute."""


@pytest.fixture(autouse=True)
def calls() -> Iterator[list[tuple[Any, ...]]]:
    """Return the arguments of the calls of the functions in ``reports``."""
    reports.calls.clear()
    yield reports.calls
    reports.calls.clear()


@pytest.fixture
def simulation(db: None) -> Iterator[Callable[..., Simulation]]:
    """Return a function that makes schedulers on a virtual clock, on 1 January 2024."""
    made: list[Simulation] = []

    def make(time: str = "10:10:30", **how: Any) -> Simulation:
        made.append(Simulation(start=f"2024-01-01T{time}Z", time_zone="UTC", **how))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.fixture
def binding(settings: Any, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Include the binding in the project, with the counts of one minute that does not end."""
    settings.ROOT_URLCONF = "tests.http.urls"
    cache.clear()
    monkeypatch.setattr(throttling, "_now", lambda: NOW)


@pytest.fixture
def caller(binding: None) -> Caller:
    """Return a caller with a token that has all rights."""
    token = access_tokens.create("everything", list(Right), system_clock.now())
    return Caller(str(token))
