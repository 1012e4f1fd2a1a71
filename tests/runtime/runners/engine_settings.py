"""The tests' project with an engine behind Django's Tasks, for workers and tests."""

from __future__ import annotations

import importlib.util
import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as _APPS

# Importing it starts a process, which the tests' own project must not.
INSTALLED_APPS = [*_APPS, *(["django_rq"] if importlib.util.find_spec("django_rq") else [])]

ENGINES = {
    "database": {"BACKEND": "django_tasks_db.DatabaseBackend"},
    "redis": {"BACKEND": "django_tasks_rq.RQBackend"},
}
TASKS = {"default": ENGINES[os.environ.get("DDC_TEST_ENGINE", "database")]}
RQ_QUEUES = {"default": {"URL": os.environ.get("DDC_TEST_REDIS", "redis://localhost:1")}}
DECLARATIVE_CRON = {"LEASE": 2, "RENEW": 0.5}
