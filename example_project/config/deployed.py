"""Settings of the shop where it is deployed: what differs there comes from the environment.

``SECRET_KEY`` and ``ALLOWED_HOSTS`` must be set. The database is found by the variables of
PostgreSQL's own library: ``PGHOST``, ``PGDATABASE``, ``PGUSER``, ``PGPASSWORD``.
"""

from __future__ import annotations

import os
from datetime import timedelta

from .settings import *
from .settings import BASE_DIR, MIDDLEWARE, SCHEDULED_TASKS

DEBUG = False
SECRET_KEY = os.environ["SECRET_KEY"]
ALLOWED_HOSTS = os.environ["ALLOWED_HOSTS"].split(",")
CSRF_TRUSTED_ORIGINS = [each for each in os.environ.get("TRUSTED_ORIGINS", "").split(",") if each]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ.get("PGDATABASE", "shop"),
        "OPTIONS": {"connect_timeout": 10, "tcp_user_timeout": 15000, "keepalives_idle": 30},
    }
}

# The server has backups of its own.
SCHEDULED_TASKS = [
    task for task in SCHEDULED_TASKS if isinstance(task, dict) or task[0] != "backup-database"
]
DECLARATIVE_CRON = {"GRACE": timedelta(seconds=25), "RELEASE": os.environ.get("RELEASE", "")}

STATIC_ROOT = BASE_DIR / "static"
MIDDLEWARE = [MIDDLEWARE[0], "whitenoise.middleware.WhiteNoiseMiddleware", *MIDDLEWARE[1:]]
