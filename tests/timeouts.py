"""The waits of the tests.

A wait ends as soon as the expected state is reached, so the timeout is generous: a busy machine
must not fail a test.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

TIMEOUT = 120.0
"""The longest wait, in seconds."""


def wait_until(is_so: Callable[[], object], what: str = "what was awaited") -> None:
    """Ask again and again until something is so."""
    pause = threading.Event()
    for _ in range(int(TIMEOUT * 50)):
        if is_so():
            return
        pause.wait(0.02)
    raise AssertionError(f"it never came: {what}")
