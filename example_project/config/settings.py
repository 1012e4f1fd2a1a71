"""Settings of the shop; ``SCHEDULED_TASKS`` is what it is about.

``SHOP_ADMIN_INTERFACE=0`` in the environment: without django-admin-interface although
it is installed.
"""

from __future__ import annotations

import importlib.util
import os
from datetime import timedelta
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parents[1]

# Everything that the shop writes; remove this folder to begin afresh.
SHOP_VAR = Path(os.environ.get("SHOP_VAR", BASE_DIR / "var"))
SHOP_VAR.mkdir(parents=True, exist_ok=True)

SCHEDULED_TASKS = [
    # The short form: name, cron expression, callback, delay before a failed run is tried
    # again. It follows the clock on the wall of TIME_ZONE, through summer and winter.
    ("sales-digest", "30 6 * * *", "shop.tasks.write_sales_digest", timedelta(minutes=10)),
    ("backup-database", "45 3 * * *", "shop.tasks.back_up_database", timedelta(minutes=15)),
    # The long form. What runs every minute or hour is declared in UTC: in Berlin's time
    # it would pause for the hour in autumn that the clocks go through twice.
    {
        "name": "import-stock",
        "cron": "* * * * *",
        "callback": "shop.tasks.import_stock",
        "retry_delay": timedelta(seconds=25),
        "tags": ["stock"],
        "description": "Book the CSV files of var/inbox. A malformed file fails the run.",
    },
    {
        "name": "serve-customers",
        "cron": "* * * * *",
        "callback": "shop.tasks.serve_customers",
        "retry_delay": timedelta(seconds=10),
        "description": "Customers buy for 45 seconds, or until the scheduler stops.",
    },
    {
        "name": "heartbeat",
        "cron": "* * * * *",
        "callback": "shop.tasks.write_heartbeat",
        "retry_delay": timedelta(seconds=5),
        "description": "Tell a monitor outside that tasks run, by var/heartbeat.json.",
    },
    {
        "name": "order-supplies",
        # The long form accepts steps, the short form only what every POSIX cron does.
        "cron": "*/5 * * * *",
        "callback": "shop.tasks.order_supplies",
        "retry_delay": timedelta(minutes=1),
        "tags": ["stock"],
        "description": "Have the supplier deliver what runs low, as a file in var/inbox.",
    },
    {
        "name": "popularity",
        "cron": "2-59/10 * * * *",
        "callback": "shop.tasks.recompute_popularity",
        "args": [60],
        "retry_delay": timedelta(minutes=1),
        "description": "An async function on Django's async ORM; its argument is in days.",
    },
    {
        "name": "clear-sessions",
        "cron": "15 4 * * *",
        "timezone": "Europe/Berlin",
        "command": ["clearsessions"],
        "retry_delay": timedelta(hours=1),
        "description": "A management command.",
    },
]

# How long a stopping scheduler waits for its runs. They all end sooner.
DECLARATIVE_CRON = {"GRACE": timedelta(seconds=15)}

_with_interface = os.environ.get("SHOP_ADMIN_INTERFACE") != "0" and bool(
    importlib.util.find_spec("admin_interface")
)

# The shop listens on this machine only, so there is nothing to keep secret.
SECRET_KEY = "for the example only"
DEBUG = True
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "testserver"]

INSTALLED_APPS = [
    *(["admin_interface", "colorfield"] if _with_interface else []),
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_declarative_cron",
    "shop",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
if _with_interface:
    # The themed admin opens its related-object windows in a frame of its own.
    X_FRAME_OPTIONS = "SAMEORIGIN"
    SILENCED_SYSTEM_CHECKS = ["security.W019"]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
STATIC_URL = "static/"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": SHOP_VAR / "shop.sqlite3",
        "OPTIONS": {
            # Web and scheduler share the file: readers never wait for the writer (WAL),
            # and a writer waits for its turn at the beginning, where waiting is possible.
            "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]
USE_TZ = True
TIME_ZONE = "Europe/Berlin"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "events": {"()": "shop.logs.EventFormatter"},
        "web": {
            "format": "{asctime} web       {message}",
            "datefmt": "%H:%M:%S",
            "style": "{",
        },
        "shop": {
            "format": "{asctime} shop      {message}",
            "datefmt": "%H:%M:%S",
            "style": "{",
        },
    },
    "handlers": {
        "events": {"class": "logging.StreamHandler", "formatter": "events"},
        "web": {"class": "logging.StreamHandler", "formatter": "web"},
        "shop": {"class": "logging.StreamHandler", "formatter": "shop"},
    },
    "loggers": {
        "django_declarative_cron": {"handlers": ["events"], "level": "INFO", "propagate": False},
        "django.server": {"handlers": ["web"], "level": "INFO", "propagate": False},
        "shop": {"handlers": ["shop"], "level": "INFO", "propagate": False},
    },
}
