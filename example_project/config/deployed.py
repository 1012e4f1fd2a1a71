"""Settings of the deployed shop, read from environment variables.

``SECRET_KEY`` and ``ALLOWED_HOSTS`` are required. The database is configured by the variables of
libpq: ``PGHOST``, ``PGDATABASE``, ``PGUSER``, ``PGPASSWORD``.

Optional: ``RELEASE``; ``HTTPS=1`` behind a proxy that terminates TLS and sets
``X-Forwarded-Proto``, with ``TRUSTED_ORIGINS``; ``SLACK_URL`` for notifications; ``PING_URL`` of an
external monitor, with ``{slug}`` for the task.
"""

from __future__ import annotations

import os
from datetime import timedelta

from .settings import *
from .settings import BASE_DIR, MIDDLEWARE, SCHEDULED_TASKS

DEBUG = False
SECRET_KEY = os.environ["SECRET_KEY"]
ALLOWED_HOSTS = os.environ["ALLOWED_HOSTS"].split(",")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = os.environ.get("HTTPS") == "1"
if SESSION_COOKIE_SECURE:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
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
SLACK_URL = os.environ.get("SLACK_URL")
PING_URL = os.environ.get("PING_URL")
DECLARATIVE_CRON = {
    "GRACE": timedelta(seconds=25),
    "RELEASE": os.environ.get("RELEASE", ""),
    "NOTIFY": [{"kind": "slack", "url": SLACK_URL}] if SLACK_URL else [],
    "MONITOR": {"ping": PING_URL, "every_task": True} if PING_URL else None,
}

# One JSON object a line, for the log collector of containers.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"run": {"()": "django_declarative_cron.runtime.context.NameRun"}},
    "formatters": {
        "json": {
            "()": "pythonjsonlogger.json.JsonFormatter",
            "fmt": "%(levelname)s %(name)s %(message)s %(taskName)s",
            "rename_fields": {"levelname": "level", "name": "logger"},
            "timestamp": "time",
        },
    },
    "handlers": {
        "json": {"class": "logging.StreamHandler", "formatter": "json", "filters": ["run"]},
    },
    "root": {"handlers": ["json"], "level": "INFO"},
}

STATIC_ROOT = BASE_DIR / "static"
MIDDLEWARE = [MIDDLEWARE[0], "whitenoise.middleware.WhiteNoiseMiddleware", *MIDDLEWARE[1:]]
