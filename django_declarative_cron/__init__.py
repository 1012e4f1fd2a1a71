"""Scheduled tasks for Django, declared in settings.

The public names are imported when first asked for: importing the package loads
neither Django nor a model, so that settings may import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazily import lazily

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

__getattr__, __dir__ = lazily(globals(), _HOMES)
