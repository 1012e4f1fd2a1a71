"""The collector of garbage waits for a batch, and is left as it was."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from django_declarative_cron.store.uncollected import uncollected

from ..patience import PATIENCE


@pytest.fixture
def collector() -> Iterator[None]:
    yield
    gc.enable()


def test_nothing_is_collected_meanwhile_and_again_afterwards(collector: None) -> None:
    with pytest.raises(ZeroDivisionError), uncollected(), uncollected():
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()


def test_who_collects_nothing_does_not_afterwards(collector: None) -> None:
    gc.disable()
    with uncollected():
        assert not gc.isenabled()
    assert not gc.isenabled()


FORKING = """
import gc, os, sys
from django_declarative_cron.store.uncollected import uncollected
def fork():
    if not (child := os.fork()):
        os._exit(gc.isenabled())
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
    done = subprocess.run([sys.executable, "-c", FORKING], check=False, timeout=PATIENCE)
    assert done.returncode == 10
