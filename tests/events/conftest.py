"""A receiver, and settings that name it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ..runtime import conftest as real
from .receiver import Receiver

_acts_are_seen_soon, heard = real._acts_are_seen_soon, real.heard
scheduler, run_now = real.scheduler, real.run_now

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()

Post = Callable[..., None]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def post_to(settings: Any) -> Post:
    """Configure a sink."""

    def configure(url: str, **more: Any) -> None:
        sink = {"url": url, "secret": SECRET, "timeout": 5, **more}
        settings.DECLARATIVE_CRON = {"EVENT_SINK": sink}

    return configure
