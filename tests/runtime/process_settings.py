"""The tests' project with tasks of its own, for scheduler processes."""

from __future__ import annotations

import os
from datetime import timedelta

from tests.settings import *  # noqa: F403

_NEVER_TODAY = "0 0 29 2 *"
_DELAY = timedelta(minutes=5)

SCHEDULED_TASKS = [
    (name, _NEVER_TODAY, f"tests.runtime.callbacks.{callback}", _DELAY)
    for name, callback in {
        "note": "note",
        "environment": "note_environment",
        "until-stopping": "until_stopping",
        "for-ever": "for_ever",
        "async": "asynchronous",
        "fail": "fail",
        "closes-everything": "closes_everything",
    }.items()
]
if os.environ.get("DDC_TEST_MISTAKE"):
    SCHEDULED_TASKS.append(("note", "* * * *", "tests.runtime.callbacks.note", _DELAY))
if os.environ.get("DDC_TEST_EVERY_MINUTE"):
    SCHEDULED_TASKS.append(("minutely", "* * * * *", "tests.runtime.callbacks.note", _DELAY))

DECLARATIVE_CRON = {"LEASE": 2, "RENEW": 0.5}
