"""What everybody is asked in this part: pages, fetched by a superuser, within one process.

A figure is the processor's time of our process and of the database's, which works alone.
"""

from __future__ import annotations

import gc
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from django.contrib import admin
from django.db import connection
from django.test import Client, override_settings
from django.urls import include, path

from ..harness.parts import Sample
from ..harness.project import counting

ONE_HUNDRED = 100

# Some themes of the admin let people choose a language.
LANGUAGES = path("i18n/", include("django.conf.urls.i18n"))

urlpatterns = [path("admin/", admin.site.urls), LANGUAGES]

_MIDDLEWARE = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
)
_PROCESSORS = (
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
)
_TEMPLATES = {
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "APP_DIRS": True,
    "OPTIONS": {"context_processors": list(_PROCESSORS)},
}


class Pages(ABC):
    """A contender of this part."""

    routes = __name__

    def prepare(self, size: int) -> None:
        """Have so many tasks and their history, and fetch each page once.

        Args:
            size: how many tasks.
        """
        from django.contrib.auth.models import User

        self._settings = override_settings(
            ROOT_URLCONF=self.routes,
            TEMPLATES=[_TEMPLATES],
            MIDDLEWARE=_MIDDLEWARE,
            ALLOWED_HOSTS=["testserver"],
            STATIC_URL="/static/",
        )
        self._settings.enable()
        self.fill(size)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
            # A second process of the database would work beside the one that is looked at.
            cursor.execute("SET max_parallel_workers_per_gather = 0")
        self._client = Client()
        self._client.force_login(User.objects.create_superuser("ada"))
        self._pages = self.pages()
        for page in self._pages.values():
            self._client.get(page)

    @abstractmethod
    def fill(self, size: int) -> None:
        """Store so many tasks, and a history.

        Args:
            size: how many tasks.
        """

    @abstractmethod
    def pages(self) -> dict[str, str]:
        """Give the addresses of the pages, by figure."""

    def measure(self) -> Iterator[Sample]:
        """Fetch every page once more."""
        for figure, page in self._pages.items():
            gc.collect()
            before = _worked()
            with counting() as count:
                answer = self._client.get(page)
            taken = _worked() - before
            right = int(answer.status_code == 200)
            yield Sample(figure, taken * 1000, right, 1, count.statements)

    def close(self) -> None:
        """Leave everything as it was."""
        self._settings.disable()


def _worked() -> float:
    """Give the seconds that our process and the database's have worked."""
    return time.process_time() + _of_database()


def _of_database() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [pid] = cursor.fetchone()
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
