"""An operator's way through the admin, in a real browser under the strictest policy."""

from __future__ import annotations

import json

import pytest

from ..process import run_python
from .chromium import PATIENCE, installed
from .walk import NOTE


@pytest.mark.nightly
@pytest.mark.own_database
@pytest.mark.skipif(installed() is None, reason="chromium is not installed")
def test_an_operator_finds_and_mends_what_failed(project_environment: dict[str, str]) -> None:
    done = run_python("-m", "tests.browser.walk", env=project_environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["problems"] == []
    assert seen["why"].startswith("It failed, and waits for its retry at ")
    assert seen["cleared"] == "Retry state cleared: exchange-rates."
    assert seen["green"].startswith("✔ succeeded")
    assert seen["paused"] == (
        f"It does not run because ada paused it, until someone resumes it ({NOTE})."
    )
    assert [line.split(" UTC ")[1].split()[0] for line in seen["audit"]] == [
        "paused",
        "run",
        "retry",
        "run",
    ]
    assert NOTE in seen["audit"][0]
    assert all(" ada" in line for line in seen["audit"][:3])
