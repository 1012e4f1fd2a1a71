"""No garbage is collected in the middle of a batch.

Thousands of rows are objects enough for Python's collector to look at everything there is in
the process, again and again: with a hundred thousand tasks a tenth of a second each time,
right at the minute. None of them is garbage before the batch is over, and few form cycles.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager


class _Collector:
    """Whether it is us that the collector waits for."""

    waits = False


@contextmanager
def uncollected() -> Iterator[None]:
    """Let the collector wait meanwhile; where it is off, it stays off."""
    if not gc.isenabled():
        yield
        return
    _Collector.waits = True
    gc.disable()
    try:
        yield
    finally:
        _collect_again()


def _collect_again() -> None:
    if _Collector.waits:
        _Collector.waits = False
        gc.enable()


if hasattr(os, "register_at_fork"):
    # A callback may fork in the middle of a batch: its process has none that comes to an end.
    os.register_at_fork(after_in_child=_collect_again)
