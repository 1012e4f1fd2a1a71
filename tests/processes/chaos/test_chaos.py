"""A short storm; ``tox -e chaos`` has the long one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

PLACES = {"postgresql": "postgres", "mysql": "mariadb", "sqlite": "sqlite"}
SHORT = {
    "mysql": {"MINUTES": "0.4", "SCHEDULERS": "2", "TASKS": "20", "GAP": "1.4"},
    "postgresql": {"MINUTES": "0.6", "SCHEDULERS": "3", "TASKS": "40", "GAP": "1.4"},
    "sqlite": {"MINUTES": "0.35", "SCHEDULERS": "2", "TASKS": "20", "GAP": "1.4"},
}
TIMEOUT = 300.0
ONCE = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="clocks are the same with every database"
)
LEASE = {"LEASE": "2", "LONGEST": "8"}


@pytest.mark.nightly
@pytest.mark.parametrize(
    "weather",
    ["all", pytest.param("clocks", marks=ONCE)],
)
def test_whatever_befalls_them_nothing_is_lost_and_nothing_runs_twice(
    weather: str, project_environment: dict[str, str], tmp_path: Path
) -> None:
    """P32, P35."""
    short = {
        f"DDC_CHAOS_{name}": value for name, value in (SHORT[connection.vendor] | LEASE).items()
    }
    measured = [name for name in os.environ if name.startswith("COVERAGE_")]
    kept = {key: value for key, value in project_environment.items() if key not in measured}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.processes.chaos"],
        env={
            **kept,
            **short,
            "DDC_CHAOS_WEATHER": weather,
            "DDC_TEST_DATABASE": PLACES[connection.vendor],
            "DATABASE_URL": "",
        },
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as storm:
        try:
            output, _ = storm.communicate(timeout=TIMEOUT)
        finally:
            storm.terminate()
    assert storm.returncode == 0, output
