"""Projects that read from a replica: nothing is decided there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.own_database
def test_p74_what_decides_is_asked_where_it_is_written(
    project_environment: dict[str, str], tmp_path: Path
) -> None:
    settings = {
        "DJANGO_SETTINGS_MODULE": "tests.processes.replicas.settings",
        "DDC_TEST_FILE": str(tmp_path / "jobs.sqlite3"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.processes.replicas.work"],
        env={**project_environment, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "the replica decides": 0,
        "runs": 11,
        "pages": [200, 200, 200, 200],
        "act": 302,
        "paused by": "ada",
        "listed": True,
    }
