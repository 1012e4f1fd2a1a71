"""The project that the tests run in; the environment chooses among its forms.

``DDC_TEST_DATABASE`` and ``DATABASE_URL``: see ``tests/database``.
``DDC_TEST_USE_TZ``: ``0`` for a project that keeps local times.
``DDC_TEST_TIME_ZONE``: the project's ``TIME_ZONE``, ``UTC`` unless set.
``DDC_TEST_DATABASE_TIME_ZONE``: the zone that other programs write to the database in.
``DDC_TEST_ADMIN_INTERFACE``: ``0`` without django-admin-interface, ``1`` with it,
unset: with it where it is installed.
``DDC_TEST_AUTO_FIELD``: the project's ``DEFAULT_AUTO_FIELD``.
``DDC_TEST_LANGUAGE``: the project's ``LANGUAGE_CODE``.
"""

from __future__ import annotations

import importlib.util
import os

from .database import from_environment

_with_interface = os.environ.get("DDC_TEST_ADMIN_INTERFACE") or (
    "1" if importlib.util.find_spec("admin_interface") else "0"
)

SECRET_KEY = "for tests only"
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
DATABASES = {"default": from_environment()}
if _database_zone := os.environ.get("DDC_TEST_DATABASE_TIME_ZONE"):
    DATABASES["default"]["TIME_ZONE"] = _database_zone
DEFAULT_AUTO_FIELD = os.environ.get("DDC_TEST_AUTO_FIELD", "django.db.models.BigAutoField")

LANGUAGE_CODE = os.environ.get("DDC_TEST_LANGUAGE", "en-us")
TIME_ZONE = os.environ.get("DDC_TEST_TIME_ZONE", "UTC")
USE_TZ = os.environ.get("DDC_TEST_USE_TZ", "1") == "1"

INSTALLED_APPS = [
    *(["admin_interface", "colorfield"] if _with_interface == "1" else []),
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    *(["django_tasks_db"] if importlib.util.find_spec("django_tasks_db") else []),
    "django_declarative_cron",
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
ROOT_URLCONF = "tests.urls"
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
# Hashing a password well takes longer than most tests.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# The themed admin opens its related-object windows in a frame of its own.
X_FRAME_OPTIONS = "SAMEORIGIN"
SILENCED_SYSTEM_CHECKS = ["security.W019"]
