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

_Thresholds = tuple[int, int, int]

_waiting: list[_Thresholds] = []
"""What is to be put back."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Let the collector wait meanwhile; where it is off, it stays off.

    By its thresholds, not by its switch: what somebody else does with that meanwhile holds
    afterwards, be it in another thread or in a module that is imported here.
    """
    before = gc.get_threshold()
    if before == _off(before):
        yield
        return
    _waiting.append(before)
    gc.set_threshold(*_off(before))
    try:
        yield
    finally:
        _put_back(before)
        _waiting.remove(before)


def _off(thresholds: _Thresholds) -> _Thresholds:
    return 0, *thresholds[1:]


def _put_back(before: _Thresholds) -> None:
    """Let the collector go on, unless somebody has said something else to it."""
    if gc.get_threshold() == _off(before):
        gc.set_threshold(*before)


def _go_on() -> None:
    for before in _waiting[:1]:
        _put_back(before)


if hasattr(os, "register_at_fork"):
    # A callback may fork in the middle of a batch: its process has none that comes to an end.
    os.register_at_fork(after_in_child=_go_on)
