"""Projects whose users are not Django's own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_users_with_a_uuid_and_without_a_name_are_written_down(
    project_environment: dict[str, str],
) -> None:
    """P96."""
    settings = {"DJANGO_SETTINGS_MODULE": "tests.admin.strangers.settings"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.admin.strangers.pause"],
        env={**project_environment, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "status": 302,
        "page": 200,
        "author": "badge 42",
        "key": True,
        "entry": True,
    }
