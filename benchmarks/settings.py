"""The Django project of every contender; environment variables say which one and its database."""

from __future__ import annotations

import json
import os
from typing import Any

from .contenders import CONTENDERS

_CONTENDER = CONTENDERS[os.environ["BENCHMARK_CONTENDER"]]
_SQLITE = os.environ.get("BENCHMARK_SQLITE")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    *_CONTENDER.apps,
]
# libpq takes host, port, user and password from its own variables.
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ.get("PGDATABASE", ""),
    }
}
if _SQLITE:
    DATABASES["default"] = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": _SQLITE,
        "OPTIONS": {
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=wal; PRAGMA synchronous=normal",
        },
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
SECRET_KEY = "for benchmarks only"
USE_TZ = True
TIME_ZONE = "UTC"
LOGGING = {"version": 1, "root": {"level": "ERROR"}}

ALLOWED_HOSTS = ["testserver"]
ROOT_URLCONF = "benchmarks.urls"
STATIC_URL = "/static/"
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DECLARATIVE_CRON = json.loads(os.environ.get("BENCHMARK_OPTIONS", "{}"))
SCHEDULED_TASKS = json.loads(os.environ.get("BENCHMARK_TASKS", "[]"))

globals().update(_CONTENDER.settings)
