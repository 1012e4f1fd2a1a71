"""Surroundings in which a scheduler has to work all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import TIMEOUT

# One process for all commands: each takes seconds to begin.
COMMANDS = """
from django.core.management import execute_from_command_line
for words in ("check", "runscheduler --once", "cron list"):
    execute_from_command_line(["manage.py", *words.split()])
    print(f"{words}: done")
"""


@pytest.mark.slow
def test_no_assertions_no_utf8_terminal_and_no_temporary_directory(
    child_environment: dict[str, str], notes: Path
) -> None:
    surroundings = {
        "DJANGO_SETTINGS_MODULE": "tests.runtime.process_settings",
        "DDC_TEST_NOTES": str(notes),
        "LC_ALL": "C",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii",
        "PYTHONUTF8": "0",
        "TMPDIR": "/nowhere",
    }
    done = subprocess.run(
        [sys.executable, "-OO", "-c", COMMANDS],
        env={**child_environment, **surroundings},
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    output = (done.stdout + done.stderr).decode("ascii")
    assert done.returncode == 0, output
    assert "cron list: done" in output
    assert "Traceback" not in output
