"""The settings of that project; ``DDC_TEST_FILE`` names the file of ``jobs``."""

import os

from tests.settings import *  # noqa: F403

_JOBS = {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DDC_TEST_FILE"]}
DATABASES = {
    # Whoever asks it fails.
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "/nowhere/default.sqlite3"},
    "jobs": _JOBS,
    "replica": {**_JOBS},
}
DATABASE_ROUTERS = ["tests.processes.replicas.router.Router"]
