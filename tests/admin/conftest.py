"""People who look at the admin, and the instant at which they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client

from django_declarative_cron.runtime.clock import SystemClock
from django_declarative_cron.testing import ManualClock

from .rows import NOW

# PostgreSQL limits the time of a page's statements in a savepoint.
LIMITING = {"postgresql": 3}.get(connection.vendor, 0)

Login = Callable[..., Client]


@pytest.fixture(autouse=True)
def _project(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.admin.pages"
    settings.SESSION_COOKIE_AGE = 60 * 60 * 24 * 365
    sessions = settings.MIDDLEWARE.index("django.contrib.sessions.middleware.SessionMiddleware")
    settings.MIDDLEWARE = [*settings.MIDDLEWARE]
    settings.MIDDLEWARE.insert(sessions + 1, "django.middleware.locale.LocaleMiddleware")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """Return the clock of the package and of the database, which stands at one instant."""
    manual = ManualClock(NOW)
    monkeypatch.setattr(SystemClock, "now", lambda self: manual.now())
    monkeypatch.setattr(SystemClock, "database_time", lambda self: manual.database_time())
    return manual


@pytest.fixture
def login(db: None) -> Login:
    """Return a client of a staff user with some permissions, or of a superuser."""

    def log_in(*codenames: str, superuser: bool = False) -> Client:
        name = "root" if superuser else "-".join(codenames) or "nobody"
        user = User.objects.create_user(name[:150], is_staff=True, is_superuser=superuser)
        wanted = Permission.objects.filter(
            content_type__app_label="django_declarative_cron", codename__in=codenames
        )
        assert wanted.count() == len(codenames)
        user.user_permissions.set(wanted)
        client = Client()
        client.force_login(user)
        return client

    return log_in


@pytest.fixture
def root(login: Login) -> Client:
    """Give a superuser's client."""
    return login(superuser=True)
