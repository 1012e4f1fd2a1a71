"""A plugin for pytest: fixtures and one option.

It does nothing that a test does not ask for, and loads nothing of Django before one does:
projects configure Django while pytest starts, and pytest loads plugins before that.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .simulation import Simulation


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that rewrites snapshots."""
    parser.getgroup("django-declarative-cron").addoption(
        "--cron-snapshot-rewrite",
        action="store_true",
        default=False,
        help="write the snapshots of the schedule anew instead of comparing them",
    )


@pytest.fixture
def cron_simulation(db: None) -> Callable[..., Simulation]:
    """Begin a simulation of the declared tasks: ``cron_simulation("2027-01-01T06:00Z")``.

    ``tasks=`` replaces them; further arguments are those of ``Simulation``. Its
    ``time_zone`` defaults to the project's. The test gets pytest-django's ``db``.
    """
    # Asked for by name in the signature: pytest-django makes test databases for those tests
    # only of which it knows before the first one runs, and others would get the project's own.
    from .testcase import simulated

    return simulated


@pytest.fixture
def cron_snapshot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compare a year of the schedule with a file: ``cron_snapshot("schedule.txt")``.

    A relative path is relative to the test's directory. ``--cron-snapshot-rewrite`` writes it.
    ``tasks=`` replaces ``SCHEDULED_TASKS``.
    """
    rewrite = bool(request.config.getoption("--cron-snapshot-rewrite"))

    def compare(path: Path | str, *, tasks: Any = None) -> None:
        """Compare the schedule with a file, or write the file."""
        __tracebackhide__ = True
        from .schedules import assert_schedule_snapshot

        assert_schedule_snapshot(request.path.parent / path, rewrite=rewrite, tasks=tasks)

    return compare
