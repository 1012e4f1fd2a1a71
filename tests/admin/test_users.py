"""Projects whose users are not Django's own."""

from __future__ import annotations

import json

import pytest

from ..process import run_python


@pytest.mark.slow
def test_users_with_a_uuid_and_without_a_name_are_written_down(
    project_environment: dict[str, str],
) -> None:
    """P96."""
    settings = {"DJANGO_SETTINGS_MODULE": "tests.admin.strangers.settings"}
    environment = {**project_environment, **settings}
    done = run_python("-m", "tests.admin.strangers.pause", env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "status": 302,
        "page": 200,
        "author": "badge 42",
        "key": True,
        "entry": True,
    }
