"""The tests' project with class-based settings, as django-configurations reads them."""

from __future__ import annotations

from configurations import Configuration

from tests.processes import settings


class Project(Configuration):  # type: ignore[misc]
    """All of the project's settings."""

    locals().update({name: value for name, value in vars(settings).items() if name.isupper()})
