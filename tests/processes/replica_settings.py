"""A project with an empty ``default``, its tables on ``jobs``, and reads sent to a replica.

``DDC_TEST_FILE`` names the file of ``jobs``.
"""

from __future__ import annotations

import os
from typing import Any

from tests.settings import *  # noqa: F403

_JOBS = {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DDC_TEST_FILE"]}
DATABASES = {
    # Whoever asks it fails.
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "/nowhere/default.sqlite3"},
    "jobs": _JOBS,
    "replica": {**_JOBS},
}


class Router:
    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "replica"

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "jobs"

    def allow_relation(self, first: Any, second: Any, **hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db == "jobs"


DATABASE_ROUTERS = ["tests.processes.replica_settings.Router"]
