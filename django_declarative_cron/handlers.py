"""The functions of this process that are registered for types (CRON-04).

Like Django's ``admin`` modules, the module ``tasks`` of each installed app is imported once,
when a type is needed or the system checks run::

    from django_declarative_cron import handler

    @handler("report.generate")
    def generate(report: dict) -> None: ...

A caller over a network names a type, and only registered functions are found, so no text from
outside is ever an import path. Importing this module imports no model and queries no database.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, TypeVar

from django.apps import AppConfig, apps
from django.utils.module_loading import module_has_submodule

from .core.declarations import values
from .core.declarations.problems import Check, Problem
from .exceptions import InvalidRegistrationError

LONGEST_TYPE: Final = 255

Handler = TypeVar("Handler", bound=Callable[..., Any])

_TYPE: Final = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*")


def flaw_of_type(name: object) -> str | None:
    """Return the flaw of the name of a type, or ``None``."""
    if not isinstance(name, str):
        return f"must be a text, not {type(name).__name__}"
    if len(name) > LONGEST_TYPE:
        return f"must have at most {LONGEST_TYPE} characters, found {len(name)}"
    if _TYPE.fullmatch(name):
        return None
    form = "lower-case words of letters, digits and _, joined by dots"
    return f"must be {form}, such as report.generate, found {name!r}"


_by_type: Final[dict[str, Callable[..., Any]]] = {}


def handler(name: str) -> Callable[[Handler], Handler]:
    """Return a decorator that registers a function for a type and returns it unchanged.

    Raises:
        InvalidRegistrationError: the name is refused, or another function has it.
    """
    flaw = flaw_of_type(name)
    if flaw is not None:
        raise InvalidRegistrationError("type", name, flaw)

    def take(function: Handler) -> Handler:
        other = _by_type.setdefault(name, function)
        # Reloading a module makes a new object of the same function.
        if _path(other) != _path(function):
            both = f"of {'.'.join(_path(function))} is taken by {'.'.join(_path(other))}"
            raise InvalidRegistrationError("type", name, f"{name!r} {both}")
        _by_type[name] = function
        return function

    return take


def _path(function: Callable[..., Any]) -> tuple[str, str]:
    name = getattr(function, "__qualname__", None) or repr(function)
    return str(getattr(function, "__module__", "")), str(name)


MODULE: Final = "tasks"

_turn: Final = threading.RLock()
_imports: Final[dict[str, Exception | None]] = {}


def find(name: str) -> Callable[..., Any] | None:
    """Return the function of a type such as ``report.generate``, or ``None`` (CRON-04)."""
    discover()
    return _by_type.get(name)


def known() -> list[str]:
    """Return the types that this process has functions for."""
    discover()
    return sorted(_by_type)


def nearest(name: str) -> str | None:
    """Return the most similar registered type, or ``None``."""
    discover()
    return values.nearest(name, _by_type)


def discover() -> None:
    """Import the ``tasks`` module of each installed app, once in a process.

    A module that cannot be imported does not affect the others; ``problems`` reports it.
    """
    if not apps.models_ready:
        return
    with _turn:
        for app in apps.get_app_configs():
            if app.name not in _imports:
                # Set first, because the module may itself look up types.
                _imports[app.name] = None
                _imports[app.name] = _imported(app)


def _imported(app: AppConfig) -> Exception | None:
    if app.module is None or not module_has_submodule(app.module, MODULE):
        return None
    try:
        import_module(f"{app.name}.{MODULE}")
    except Exception as error:
        # A module may raise anything while it is imported.
        return error
    return None


def problems() -> Iterator[Problem]:
    """Yield the problems of the ``tasks`` modules of the installed apps."""
    discover()
    for app in apps.get_app_configs():
        place, error = f"{app.name}.{MODULE}", _imports.get(app.name)
        if error is None:
            continue
        if isinstance(error, InvalidRegistrationError):
            hint = "Give each function a type of its own."
            yield Problem(check=Check.HANDLER, place=place, message=error.message, hint=hint)
        else:
            message = f"cannot be imported, so its types are unknown: {type(error).__name__}: "
            hint = "Fix it, if it registers types with `handler`."
            yield Problem(
                check=Check.TASKS_MODULE, place=place, message=f"{message}{error}", hint=hint
            )
