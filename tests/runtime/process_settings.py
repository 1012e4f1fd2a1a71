"""The tests' project with tasks of its own, for scheduler processes and workers of engines."""

from __future__ import annotations

import os
from datetime import timedelta

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as _APPS

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
if os.environ.get("DDC_TEST_SPINS"):
    SCHEDULED_TASKS.append(
        {
            "name": "spins",
            "cron": _NEVER_TODAY,
            "callback": "tests.runtime.runners.callbacks.spins",
            "runner": "process",
        }
    )
if os.environ.get("DDC_TEST_EVERY_MINUTE"):
    SCHEDULED_TASKS.append(("minutely", "* * * * *", "tests.runtime.callbacks.note", _DELAY))

DECLARATIVE_CRON = {"LEASE": 2, "RENEW": 0.5}

ENGINES = {
    "database": {"BACKEND": "django_tasks_db.DatabaseBackend"},
    "redis": {"BACKEND": "django_tasks_rq.RQBackend"},
}
if _engine := os.environ.get("DDC_TEST_ENGINE"):
    # Importing this one starts a process and takes a second.
    INSTALLED_APPS = [*_APPS, *(["django_rq"] if _engine == "redis" else [])]
    TASKS = {"default": ENGINES[_engine]}
    RQ_QUEUES = {"default": {"URL": os.environ.get("DDC_TEST_REDIS")}}
