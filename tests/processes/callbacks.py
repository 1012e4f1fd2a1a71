"""Callbacks that do to their process what a callback should not, or fork others."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from django_declarative_cron.runtime import forking, heartbeat
from django_declarative_cron.runtime.engine import Engine
from django_declarative_cron.runtime.loop import Loop
from django_declarative_cron.runtime.shutdown import Shutdown
from django_declarative_cron.runtime.watchdog import WatchdogProcess
from django_declarative_cron.store import liveness

from ..runtime.callbacks import _note


def hold_the_lock() -> None:
    """Keep every Python thread of the process from working, again and again beyond the lease.

    Another one of them may hold the database's lock just then: it lets go of it in between.
    """
    _note("held")
    seconds = 4
    while not Path(os.environ["DDC_TEST_DOOR"]).exists():
        ctypes.PyDLL(None).usleep(seconds * 1_000_000)
        time.sleep(0.1)  # A transaction that was caught needs several turns to its end.
        seconds = min(2 * seconds, 16)
    _note("let go")


def close_the_pipe() -> None:
    """Close a descriptor that belongs to somebody else: the pipe to the watchdog process."""
    gc.unfreeze()  # What a scheduler was made of is out of the collector's sight.
    [watchdog] = [each for each in gc.get_objects() if isinstance(each, WatchdogProcess)]
    os.close(watchdog._pipe.number)
    _note("closed")


def leave_a_child() -> None:
    """Start a process that inherits every descriptor and outlives this one."""
    # It reads nothing: the standard input of a worker of xdist is at its end at once.
    program = "import time; time.sleep(1000)"
    child = subprocess.Popen([sys.executable, "-S", "-c", program], close_fds=False)
    _note(f"child {child.pid}")


def exit_at_once() -> None:
    """End the process without any ceremony, the first time."""
    _note("exits")
    os._exit(9)


def break_the_loop() -> None:
    """Plant an error beyond what the loop catches."""
    Loop._seconds_after_tick = _raise  # type: ignore[method-assign]


def break_the_heartbeat() -> None:
    """Plant an error beyond what the heartbeat catches."""
    heartbeat.Heartbeat.once = _raise  # type: ignore[method-assign]


def break_the_watch_for_signals() -> None:
    """Plant an error in the thread that hears signals."""
    Shutdown._take = _raise  # type: ignore[method-assign]


def break_a_few_passes() -> None:
    """Plant errors that end a thread, in what is called again and again."""
    broken = iter([SystemExit(3), KeyboardInterrupt(), MemoryError()])
    ticks, beats = Engine.tick, liveness.heartbeat

    def tick(engine: Engine, now: datetime) -> Any:
        for error in broken:
            raise error
        return ticks(engine, now)

    def beat(*_: object) -> bool:
        liveness.heartbeat = beats
        raise SystemExit(3)

    Engine.tick = tick  # type: ignore[method-assign]
    liveness.heartbeat = beat


def _raise(*_: object) -> Any:
    raise SystemExit(3)


def raise_system_exit() -> None:
    sys.exit(3)


def raise_keyboard_interrupt() -> None:
    raise KeyboardInterrupt


# --- that fork: with ``multiprocessing``, and by hand ---

_fork = multiprocessing.get_context("fork")


def _double(number: int) -> int:
    return 2 * number


def make_pools() -> None:
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
