"""Surroundings in which a scheduler has to work all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import TIMEOUT


@pytest.mark.slow
@pytest.mark.parametrize("words", [("check",), ("cron", "list"), ("runscheduler", "--once")])
def test_no_assertions_no_utf8_terminal_and_no_temporary_directory(
    child_environment: dict[str, str], notes: Path, words: tuple[str, ...]
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
        [sys.executable, "-OO", "-m", "django", *words],
        env={**child_environment, **surroundings},
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    output = (done.stdout + done.stderr).decode("ascii")
    assert done.returncode == 0, output
    assert "Traceback" not in output
