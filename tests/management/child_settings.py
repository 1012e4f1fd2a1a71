"""Settings of the child processes that these tests start."""

from __future__ import annotations

from datetime import timedelta

from tests.settings import *  # noqa: F403

_YEARLY = "0 0 1 1 *"
_DELAY = timedelta(minutes=5)

SCHEDULED_TASKS = [
    ("fine", _YEARLY, "tests.management.callbacks.nothing", _DELAY),
    ("faulty", _YEARLY, "tests.management.callbacks.fail", _DELAY),
    ("endless", _YEARLY, "tests.management.callbacks.wait_for_ctrl_c", _DELAY),
]
