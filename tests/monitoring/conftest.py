"""A scheduler with a loop, and a receiver of its requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from django_declarative_cron import Scheduler
from django_declarative_cron.monitoring import http_client, notifications
from django_declarative_cron.runtime import watchers

from ..receiver import Got, Receiver
from ..runtime import conftest as real
from ..runtime.conftest import Heard

_acts_are_seen_soon, heard = real._acts_are_seen_soon, real.heard
live, scheduler, run_now = real.live, real.scheduler, real.run_now


@dataclass
class Watched:
    """A scheduler, and a receiver of its check-ins and notifications."""

    scheduler: Scheduler
    heard: Heard
    run: Callable[..., None]
    receiver: Receiver
    settings: Any

    def begin(self, *tasks: dict[str, Any], **options: Any) -> None:
        self.settings.DECLARATIVE_CRON = options
        self.scheduler.initialize(list(tasks))

    def pinged(self, **more: Any) -> dict[str, Any]:
        """Return the option that sends pings to the receiver."""
        return {"ping": f"{self.receiver.url}/{{slug}}", **more}

    def taken(self, number: int) -> list[Got]:
        """Wait for a number of accepted requests, and return them."""
        self.receiver.wait(lambda it: len(it.taken) == number)
        return list(self.receiver.taken)


@pytest.fixture
def watched(
    scheduler: Scheduler,
    heard: Heard,
    run_now: Callable[..., None],
    receiver: Receiver,
    settings: Any,
) -> Watched:
    return Watched(scheduler, heard, run_now, receiver, settings)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Retry without a pause, poll often, and end each watcher with its test."""
    monkeypatch.setattr(http_client, "BACKOFF", 0.0)
    monkeypatch.setattr(notifications, "POLL_INTERVAL", 0.05)
    monkeypatch.setattr("django_declarative_cron.core.notifications.GATHER", 0.05)
    yield
    watchers.end(0.5)
    assert watchers._holders == 0
