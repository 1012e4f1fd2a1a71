"""Class-based settings of django-configurations reach the processes of runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..process import Process
from ..runtime.conftest import run_now

__all__ = ["run_now"]

pytest.importorskip("configurations")

pytestmark = pytest.mark.nightly


def test_a_run_in_a_process_has_the_settings_of_the_class(
    start: Callable[..., Process], run_now: Callable[..., None]
) -> None:
    process = start(
        python=[sys.executable, str(Path(__file__).with_name("manage_configured.py"))],
        DJANGO_SETTINGS_MODULE="tests.packages.configured_settings",
        PYTHONPATH=str(Path(__file__).parents[2]),
    )
    process.up()
    run_now("end-children-process")
    process.wait_for("TaskRunCompleted")
