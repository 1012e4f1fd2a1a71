"""Scheduled tasks for Django, declared in settings.

The public names are imported when they are first used: importing the package loads
neither Django nor a model, so settings may import it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .exceptions import DeclarativeCronError
    from .handlers import handler
    from .runtime.context import Run, current_run
    from .runtime.scheduler import Scheduler

__version__ = "0.1.0"

__all__ = ["DeclarativeCronError", "Run", "Scheduler", "__version__", "current_run", "handler"]

_HOMES = {
    "DeclarativeCronError": ".exceptions",
    "Run": ".runtime.context",
    "Scheduler": ".runtime.scheduler",
    "current_run": ".runtime.context",
    "handler": ".handlers",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
