"""Processes of runs are forked by a server that ran the scheduler's own entry point."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..process import Process

pytestmark = [
    pytest.mark.alike,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]

_MANAGE = Path(__file__).with_name("manage_with_shim.py")
_GIVEN = {
    "python": [sys.executable, str(_MANAGE)],
    "DJANGO_SETTINGS_MODULE": "tests.processes.shim_settings",
    "PYTHONPATH": str(Path(__file__).parents[2]),
}


def test_a_run_in_a_process_has_what_manage_py_has_prepared(
    start: Callable[..., Process], run_now: Callable[..., None]
) -> None:
    process = start(**_GIVEN)
    process.wait_for("SIGTERM or Ctrl-C stops it")
    run_now("end-children-process")
    process.wait_for("TaskRunCompleted")


def test_an_error_of_the_entry_point_is_that_of_the_run(
    start: Callable[..., Process], run_now: Callable[..., None]
) -> None:
    process = start(**_GIVEN, DDC_TEST_BROKEN_ENTRY="1")
    process.wait_for("SIGTERM or Ctrl-C stops it")
    run_now("end-children-process")
    process.wait_for("TaskRunFailed")
    process.wait_for("2 times before it began: LookupError: the entry point is broken")
    process.wait_for("Traceback (most recent call last):")
