"""Stories are played in real transactions, and each leaves the database empty."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def db(django_db_setup: None, django_db_blocker: pytest.FixtureRequest) -> Iterator[None]:
    """Open the database with no transaction around the test, and no flush after it.

    By its name pytest-django sees that a database is wanted.
    """
    with django_db_blocker.unblock():
        yield


@pytest.fixture
def stage(db: None) -> Iterator[None]:
    """Open the database to stories, with nobody listening to the log."""
    logger = logging.getLogger("django_declarative_cron")
    before = logger.disabled
    logger.disabled = True
    yield
    logger.disabled = before
