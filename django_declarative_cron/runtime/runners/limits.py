"""How much memory and time of the processor a process may take."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from typing import Any

OPTIONS = ("memory_limit", "cpu_limit")
"""Keys of ``options`` that only a process can keep to: bytes, and seconds."""


def of(options: Mapping[str, Any]) -> dict[str, int]:
    """Give the limits that a task declares.

    Args:
        options: of its declaration.
    """
    return {key: int(options[key]) for key in OPTIONS if options.get(key)}


def impose(limits: Mapping[str, int]) -> None:
    """Limit this process.

    Args:
        limits: as ``of`` gave them.
    """
    if not limits or sys.platform == "win32":
        return
    import resource

    memory, seconds = limits.get("memory_limit"), limits.get("cpu_limit")
    if memory is not None:
        # What is mapped and not written to is not counted, other than by RLIMIT_AS.
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    if seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def words_of_signal(number: int, limits: Mapping[str, int]) -> str:
    """Name the signal that ended a process, and the limit behind it where there was one.

    Args:
        number: of the signal.
        limits: of the process.
    """
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if name == "SIGXCPU" and "cpu_limit" in limits:
        return f"{name}: it used the {limits['cpu_limit']} s of the processor that it may"
    return name
