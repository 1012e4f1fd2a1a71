"""The plugin in projects of others: with pytest-django, without it, before Django is set up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import CHECKOUT, PACKAGE

PLUGIN = "django_declarative_cron.testing.plugin"
SETTINGS = """
SECRET_KEY = "x"
USE_TZ = True
TIME_ZONE = "Europe/Berlin"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.admin",
    "django.contrib.messages", "django.contrib.sessions", "django_declarative_cron",
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
SCHEDULED_TASKS = [
    {"name": "bill", "cron": "0 3 1 1 *", "timezone": "UTC", "callback": "os.getcwd"},
]
"""


def run(folder: Path, test: str, *words: str, **environment: str) -> tuple[int, str]:
    """Run a test file in a project of its own."""
    (folder / "shop_settings.py").write_text(SETTINGS)
    (folder / "test_shop.py").write_text(test)
    (folder / "pytest.ini").write_text("[pytest]\n")
    paths = os.pathsep.join([str(folder), str(PACKAGE.parent), str(CHECKOUT)])
    others = ("DJANGO_", "PYTEST_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(others)}
    # Only this plugin, and what a test asks for: others of this environment are not the project's.
    command = [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *words],
        cwd=folder,
        env={**kept, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.own_database
@pytest.mark.slow
def test_it_loads_nothing_of_django_and_starts_nothing_unasked(tmp_path: Path) -> None:
    test = """
import sys
import threading

def test_nothing_happened():
    assert [name for name in sys.modules if name.partition(".")[0] == "django"] == []
    assert threading.active_count() == 1
"""
    code, said = run(tmp_path, test)
    assert (code, "1 passed" in said) == (0, True), said


@pytest.mark.own_database
@pytest.mark.slow
def test_without_pytest_django_a_schedule_can_be_tested_and_a_simulation_cannot(
    tmp_path: Path,
) -> None:
    test = """
import django
django.setup()

from django_declarative_cron.testing import assert_fires

def test_the_bill():
    assert_fires("bill", between=("2027-01-01", "2027-01-02"), at=["2027-01-01 03:00"])

def test_simulated(cron_simulation):
    pass
"""
    code, said = run(tmp_path, test, DJANGO_SETTINGS_MODULE="shop_settings")
    assert (code, "1 passed, 1 error" in said) == (1, True), said
    assert "fixture 'db' not found" in said


@pytest.mark.own_database
@pytest.mark.slow
def test_with_pytest_django_there_are_simulations_and_snapshots(tmp_path: Path) -> None:
    test = """
def test_simulated(cron_simulation):
    sim = cron_simulation("2027-01-01T02:30Z")
    sim.advance_to("2027-01-01T03:30Z")
    assert [run.outcome for run in sim.runs("bill")] == ["succeeded"]

def test_reviewed(cron_snapshot):
    cron_snapshot("schedule.txt")
"""
    django = ("-p", "pytest_django.plugin", "--ds", "shop_settings")
    code, said = run(tmp_path, test, *django)
    assert (code, "1 failed, 1 passed" in said) == (1, True), said
    assert "is not there; write it with pytest --cron-snapshot-rewrite" in said
    # The line of the test is shown, and none of ours.
    assert "schedules.py" not in said
    code, said = run(tmp_path, test, *django, "--cron-snapshot-rewrite", "-k", "reviewed")
    assert code == 0, said
    assert "bill" in (tmp_path / "schedule.txt").read_text()
