"""What our pages say can be read, in the light and in the dark, with the theme and without."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from .chromium import installed


@pytest.mark.nightly
@pytest.mark.own_database
@pytest.mark.skipif(installed() is None, reason="chromium is not installed")
@pytest.mark.parametrize("admin", ["plain", "themed"])
def test_no_text_of_ours_is_too_faint(admin: str, project_environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.browser.legibility", "--admin", admin],
        env=project_environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []
