"""Settings of the shop where it is deployed: what differs there comes from the environment.

``SECRET_KEY`` and ``ALLOWED_HOSTS`` must be set. The database is found by the variables of
PostgreSQL's own library: ``PGHOST``, ``PGDATABASE``, ``PGUSER``, ``PGPASSWORD``.

What may be set: ``RELEASE``; ``HTTPS=1`` behind a proxy that speaks TLS and sets
``X-Forwarded-Proto`` itself, with ``TRUSTED_ORIGINS``; ``SLACK_URL``, where people are told of what
needs them; ``PING_URL`` of a monitor outside, with ``{slug}`` in place of the task.
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

# One JSON object a line, for whatever gathers the output of containers.
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
