"""Callbacks that do to their process what a callback should not."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys

from django_declarative_cron.runtime.companion import Companion

from ..runtime.callbacks import _note


def hold_the_lock() -> None:
    """Keep every Python thread of the process from working for a few seconds."""
    _note("held")
    ctypes.PyDLL(None).usleep(5_000_000)
    _note("let go")


def close_the_pipe() -> None:
    """Close a descriptor that belongs to somebody else: the pipe to the companion."""
    [companion] = [each for each in gc.get_objects() if isinstance(each, Companion)]
    os.close(companion._pipe)
    _note("closed")


def leave_a_child() -> None:
    """Start a process that inherits every descriptor and outlives this one."""
    child = subprocess.Popen([sys.executable, "-S", "-c", "input()"], close_fds=False)
    _note(f"child {child.pid}")


def exit_at_once() -> None:
    """End the process without any ceremony, the first time."""
    _note("exits")
    os._exit(9)


def raise_system_exit() -> None:
    """Ask the process to end, as code written for a script does."""
    sys.exit(3)


def raise_keyboard_interrupt() -> None:
    """Raise what Ctrl-C raises."""
    raise KeyboardInterrupt
