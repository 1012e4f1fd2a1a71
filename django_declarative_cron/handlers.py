"""The functions of this process that answer to types, and where they are looked for.

As the admin finds ``admin`` modules, the module ``tasks`` of each installed app is
imported once, when something asks for a type or the system checks run::

    from django_declarative_cron import handler

    @handler("report.generate")
    def generate(report: dict) -> None: ...

Importing this module imports nothing else of the project and asks no database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final

from django.apps import AppConfig, apps
from django.utils.module_loading import module_has_submodule

from .core.declarations.problems import Check, Problem
from .core.handlers import Handlers
from .exceptions import InvalidRegistrationError

__all__ = ["discover", "find", "handler", "known", "nearest", "problems"]

MODULE: Final = "tasks"

_handlers: Final = Handlers()
_turn: Final = threading.RLock()
_looked_at: Final[dict[str, Exception | None]] = {}

handler = _handlers.register


def find(name: str) -> Callable[..., Any] | None:
    """Give the function that answers to a type, or ``None`` (CRON-04).

    Args:
        name: of the type, such as ``report.generate``.
    """
    discover()
    return _handlers.find(name)


def known() -> list[str]:
    """Give the types that functions of this process answer to."""
    discover()
    return list(_handlers)


def nearest(name: str) -> str | None:
    """Propose the registered type that was probably meant.

    Args:
        name: what was written.
    """
    discover()
    return _handlers.nearest(name)


def discover() -> None:
    """Import the ``tasks`` module of each installed app, once in a process.

    One that cannot be imported keeps no other from being found; ``problems`` tells of it.
    """
    if not apps.models_ready:
        return
    with _turn:
        for app in apps.get_app_configs():
            if app.name not in _looked_at:
                # Noted first, because the module may itself ask for types.
                _looked_at[app.name] = None
                _looked_at[app.name] = _imported(app)


def _imported(app: AppConfig) -> Exception | None:
    if app.module is None or not module_has_submodule(app.module, MODULE):
        return None
    try:
        import_module(f"{app.name}.{MODULE}")
    except Exception as error:
        # A module runs whatever it likes while it is imported.
        return error
    return None


def problems() -> Iterator[Problem]:
    """Give what is wrong with the ``tasks`` modules of the installed apps."""
    discover()
    for app in apps.get_app_configs():
        place, error = f"{app.name}.{MODULE}", _looked_at.get(app.name)
        if error is None:
            continue
        if isinstance(error, InvalidRegistrationError):
            hint = "Give each function a type of its own."
            yield Problem(check=Check.HANDLER, place=place, message=error.message, hint=hint)
        else:
            message = f"cannot be imported, so its types are unknown: {type(error).__name__}: "
            hint = "Mend it, if it registers types with `handler`."
            yield Problem(
                check=Check.TASKS_MODULE, place=place, message=f"{message}{error}", hint=hint
            )
