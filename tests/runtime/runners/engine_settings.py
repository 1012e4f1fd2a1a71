"""The tests' project with an engine behind Django's Tasks, for workers and tests."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as _APPS

_ENGINE = os.environ.get("DDC_TEST_ENGINE", "database")

# Importing it starts a process, which the tests' own project must not, and takes a second.
INSTALLED_APPS = [*_APPS, *(["django_rq"] if _ENGINE == "redis" else [])]

ENGINES = {
    "database": {"BACKEND": "django_tasks_db.DatabaseBackend"},
    "redis": {"BACKEND": "django_tasks_rq.RQBackend"},
}
TASKS = {"default": ENGINES[_ENGINE]}
RQ_QUEUES = {"default": {"URL": os.environ.get("DDC_TEST_REDIS", "redis://localhost:1")}}
DECLARATIVE_CRON = {"LEASE": 2, "RENEW": 0.5}
