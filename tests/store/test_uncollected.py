"""The collector of garbage waits for a batch, and is left as it was."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from django_declarative_cron.store.uncollected import uncollected

from ..timeouts import TIMEOUT


@pytest.fixture
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.enable()


class _Ring:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.own = self


def _is_collected(number: int = 100_000) -> bool:
    gone: list[bool] = []
    weakref.finalize(_Ring(), gone.append, True)
    kept = [[each] for each in range(number)]
    return bool(kept and gone)


def test_nothing_is_collected_meanwhile_and_again_afterwards(collector: None) -> None:
    assert _is_collected()
    with pytest.raises(ZeroDivisionError), uncollected(), uncollected():
        assert not _is_collected()
        raise ZeroDivisionError
    assert _is_collected()


def test_who_collects_nothing_does_not_afterwards(collector: None) -> None:
    gc.set_threshold(0)
    with uncollected():
        assert not _is_collected()
    assert gc.get_threshold()[0] == 0


def test_what_somebody_else_says_to_the_collector_meanwhile_holds(collector: None) -> None:
    before = gc.get_threshold()
    with uncollected():
        gc.disable()
    assert not gc.isenabled()
    assert gc.get_threshold() == before
    with uncollected():
        gc.enable()
        gc.set_threshold(50_000, 20, 30)
    assert gc.isenabled()
    assert gc.get_threshold() == (50_000, 20, 30)


FORKING = """
import gc, os, sys
from django_declarative_cron.store.uncollected import uncollected
def fork():
    if not (child := os.fork()):
        os._exit(gc.isenabled() and gc.get_threshold()[0] > 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
with uncollected():
    during = fork()
gc.disable()
with uncollected():
    off = fork()
sys.exit(10 * during + off)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_what_is_forked_in_the_middle_of_a_batch_collects_its_garbage() -> None:
    # In a process of its own, which has no other thread.
    done = subprocess.run([sys.executable, "-c", FORKING], check=False, timeout=TIMEOUT)
    assert done.returncode == 10
