"""Rows first: positions, heights and names of the pages in a real browser, in both themes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from .chromium import installed

HIGHEST_FIRST_ROW = {"1400": 320, "420": 420}


@pytest.mark.nightly
@pytest.mark.own_database
@pytest.mark.skipif(installed() is None, reason="chromium is not installed")
@pytest.mark.parametrize("admin", ["plain", "themed"])
def test_rows_and_actions_are_near_the_top(admin: str, project_environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.browser.layout", "--admin", admin],
        env=project_environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for width, pages in found.items():
        tasks = pages["list"]
        assert tasks["first_row"] <= HIGHEST_FIRST_ROW[width]
        assert len(tasks["row_heights"]) == 100
        assert max(tasks["row_heights"]) <= 36
        assert tasks["tab_stops"] <= 20
        task = pages["task"]
        assert task["actions"] and max(task["actions"]) < 900
        assert task["why"] < task["state"] < task["runs"] < task["upcoming"]
        for name, page in pages.items():
            assert page["too_wide"] <= 0, (width, name)
            assert page["nameless"] == [], (width, name)
