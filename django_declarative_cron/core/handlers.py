"""Names under which functions can be asked for from outside: the types of 002 (CRON-04).

A caller over a network names a type; only what was registered here answers to it, so that
no text from outside is ever an import path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from ..exceptions import InvalidRegistrationError
from .declarations.values import nearest

LONGEST_TYPE: Final = 255

Handler = TypeVar("Handler", bound=Callable[..., Any])

_TYPE: Final = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*")


def flaw_of_type(name: object) -> str | None:
    """Return what keeps a value from being the name of a type, or ``None``."""
    if not isinstance(name, str):
        return f"must be a text, not {type(name).__name__}"
    if len(name) > LONGEST_TYPE:
        return f"must have at most {LONGEST_TYPE} characters, found {len(name)}"
    if _TYPE.fullmatch(name):
        return None
    form = "lower-case words of letters, digits and _, joined by dots"
    return f"must be {form}, such as report.generate, found {name!r}"


class Handlers:
    """Hold the functions that answer to types."""

    def __init__(self) -> None:
        self._by_type: dict[str, Callable[..., Any]] = {}

    def register(self, name: str) -> Callable[[Handler], Handler]:
        """Return a decorator that lets a function answer to a type, and leaves it as it is.

        Raises:
            InvalidRegistrationError: the name is none, or another function has it.
        """
        flaw = flaw_of_type(name)
        if flaw is not None:
            raise InvalidRegistrationError("type", name, flaw)

        def take(function: Handler) -> Handler:
            other = self._by_type.setdefault(name, function)
            # A module that is loaded anew brings the same function as another object.
            if _path(other) != _path(function):
                both = f"of {'.'.join(_path(function))} is taken by {'.'.join(_path(other))}"
                raise InvalidRegistrationError("type", name, f"{name!r} {both}")
            self._by_type[name] = function
            return function

        return take

    def find(self, name: str) -> Callable[..., Any] | None:
        """Return the function that answers to a type, or ``None``."""
        return self._by_type.get(name)

    def nearest(self, name: str) -> str | None:
        """Propose the registered type that was probably meant."""
        return nearest(name, self._by_type)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._by_type))

    def __len__(self) -> int:
        return len(self._by_type)


def _path(function: Callable[..., Any]) -> tuple[str, str]:
    name = getattr(function, "__qualname__", None) or repr(function)
    return str(getattr(function, "__module__", "")), str(name)
