"""The tests' project with a task that a process calls at once, for scheduler processes."""

from __future__ import annotations

from tests.settings import *  # noqa: F403

SCHEDULED_TASKS = [
    {
        "name": "spins",
        "cron": "* * * * *",
        "callback": "tests.runtime.runners.callbacks.spins",
        "runner": "process",
    }
]
DECLARATIVE_CRON = {"LEASE": 2, "RENEW": 0.5}
