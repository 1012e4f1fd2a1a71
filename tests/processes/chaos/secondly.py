"""A project whose tasks are tried every second: how soon they go on is how soon it recovers."""

from __future__ import annotations

from datetime import timedelta

from .settings import *  # noqa: F403

# A failed run without a delay is tried again a second after its end.
SCHEDULED_TASKS = [
    (f"secondly-{number}", "* * * * *", "tests.processes.chaos.secondly.fail", timedelta(0))
    for number in range(5)
]


def fail() -> None:
    """Fail, so as to be called again."""
    raise RuntimeError("as intended")
