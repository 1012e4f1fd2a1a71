"""The tests' project with an engine behind Django's Tasks, for workers and tests."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403

ENGINES = {
    "database": {"BACKEND": "django_tasks_db.DatabaseBackend"},
    "redis": {"BACKEND": "django_tasks_rq.RQBackend"},
}
TASKS = {"default": ENGINES[os.environ.get("DDC_TEST_ENGINE", "database")]}
RQ_QUEUES = {"default": {"URL": os.environ.get("DDC_TEST_REDIS", "redis://localhost:1")}}
DECLARATIVE_CRON = {"LEASE": 2, "RENEW": 0.5}
