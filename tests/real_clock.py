"""The real clock, which a test reads only where it is marked ``real_clock``.

A test on a clock that it controls gives the same result at any minute, hour and day. freezegun and
time-machine control the clock of the whole process; a ``ManualClock`` takes the place of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
import time_machine
from freezegun import api

from django_declarative_cron.runtime.clock import SystemClock

REFUSED: Final = (
    "This test reads the real clock. Give it a ManualClock, or freeze the time, or mark it"
    " with real_clock."
)

NOON: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
"""The instant of tests that need one, and any would do."""

_READERS: Final = {
    *("date.today", "datetime.now", "datetime.today", "datetime.utcnow"),
    *("time.time", "time.time_ns", "timezone.localdate", "timezone.now"),
}


def is_controlled() -> bool:
    """Return whether a library freezes or moves the clock of this process."""
    return bool(api.freeze_factories) or time_machine.escape_hatch.is_travelling()


_now = SystemClock.now
_is_refused = False


def refuse(*, unless: bool) -> None:
    """Fail the tests from now on where the package reads the real clock on their behalf."""
    global _is_refused
    _is_refused = not unless


def _guarded(clock: SystemClock) -> datetime:
    if _is_refused and not is_controlled():
        # It is no ``Exception``, so that code that outlives errors does not hide it.
        pytest.fail(REFUSED)
    return _now(clock)


SystemClock.now = _guarded  # type: ignore[method-assign]


def stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the package read one instant, whichever minute it is."""
    monkeypatch.setattr(SystemClock, "now", lambda clock: NOON)


def readings(path: Path) -> Iterator[str]:
    """Give the calls of a module that read the real clock, with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _READERS:
            yield f"{path.name}:{node.lineno} {ast.unparse(node.func)}"
