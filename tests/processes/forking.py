"""Callbacks that fork: with ``multiprocessing``, and by hand."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

from django_declarative_cron.runtime import forking

from ..runtime.callbacks import _note

_fork = multiprocessing.get_context("fork")


def _double(number: int) -> int:
    return 2 * number


def make_pools() -> None:
    """Map in one pool after another."""
    for _ in range(int(os.environ["DDC_TEST_POOLS"])):
        with _fork.Pool(3) as pool:
            assert pool.map(_double, range(50)) == [2 * number for number in range(50)]
    _note("pools ended")


def end_children() -> None:
    """End children by the signal that ends processes, one of them as soon as it is there."""
    child = _fork.Process(target=time.sleep, args=(1000,))
    child.start()
    child.terminate()
    child.join()
    _note(f"multiprocessing {child.exitcode}")
    pid = os.fork()
    if not pid:
        time.sleep(1000)
        os._exit(0)
    os.kill(pid, signal.SIGTERM)
    _note(f"fork {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}")


def show_descriptors_of_a_child() -> None:
    """Note how many descriptors with the high numbers of ours a forked child has."""
    child = _fork.Process(target=_note_high_descriptors)
    child.start()
    child.join()


def _note_high_descriptors() -> None:
    high = [each for each in map(int, os.listdir("/dev/fd")) if each >= forking._HIGH]
    _note(f"high {len(high)}")


def leave_a_worker() -> None:
    """Leave a forked child behind, which outlives the scheduler."""
    pid = os.fork()
    if not pid:
        os.setsid()
        time.sleep(1000)
        os._exit(0)
    _note(f"worker {pid}")
