"""Settings of the child processes that these tests start."""

from __future__ import annotations

from datetime import timedelta

from tests.settings import *  # noqa: F403

_HOURLY = "0 * * * *"
_DELAY = timedelta(minutes=5)

SCHEDULED_TASKS = [
    ("fine", _HOURLY, "tests.commands.callbacks.nothing", _DELAY),
    ("faulty", _HOURLY, "tests.commands.callbacks.fail", _DELAY),
    ("endless", _HOURLY, "tests.commands.callbacks.wait_for_ctrl_c", _DELAY),
]
