"""The project of ``benchmarks/engine.py``: the tests' one, with an engine on Redis."""

from __future__ import annotations

import os

from tests.runtime.runners.engine_settings import *  # noqa: F403

TASKS = {"default": {"BACKEND": "django_tasks_rq.RQBackend"}}
RQ_QUEUES = {"default": {"URL": os.environ.get("BENCHMARK_REDIS", "redis://localhost:1")}}
DECLARATIVE_CRON = {"LEASE": 5, "RENEW": 1}
LOGGING = {"version": 1, "root": {"level": "ERROR"}}
