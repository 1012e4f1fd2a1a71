"""Callbacks that do to their process what a callback should not."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from django_declarative_cron.runtime import heartbeat
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
    """Ask the process to end, as code written for a script does."""
    sys.exit(3)


def raise_keyboard_interrupt() -> None:
    """Raise what Ctrl-C raises."""
    raise KeyboardInterrupt
