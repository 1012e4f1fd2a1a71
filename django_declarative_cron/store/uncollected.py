"""No garbage is collected in the middle of a batch.

Thousands of rows are objects enough for Python's collector to look at everything there is in
the process, again and again: with a hundred thousand tasks a tenth of a second each time,
right at the minute. None of them is garbage before the batch is over, and few form cycles.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Let the collector wait meanwhile; where it is off, it stays off."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
