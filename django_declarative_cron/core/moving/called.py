"""What a foreign task calls, as keys of an entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..declarations.values import flaw_of_data
from .moved import Difference, UntranslatableError

CALL: Final = "django_declarative_cron.borrowed.call"
DO: Final = "django_declarative_cron.borrowed.do"
SHELL: Final = "django_declarative_cron.borrowed.shell"

PRINTED: Final = 'what it prints goes where runscheduler prints, and "runner": "process" keeps it'

Binder = Callable[[str, Sequence[Any], Mapping[str, Any]], Sequence[Any] | None]
"""Give arguments by name as positional ones, ``None`` where the function does not allow it."""


def unbound(path: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any] | None:
    """Bind nothing but what has no names."""
    return None if kwargs else args


def called(
    path: str, args: Sequence[Any], kwargs: Mapping[str, Any], bind: Binder = unbound
) -> tuple[dict[str, Any], list[Difference]]:
    """Return the keys that say what runs.

    Raises:
        UntranslatableError: the arguments are not JSON-native.
    """
    flaw = flaw_of_data([_plain(args), _plain(kwargs)])
    if flaw is not None:
        raise UntranslatableError(f"what it is called with {flaw}: only JSON can be declared")
    if not all(isinstance(key, str) for key in kwargs):
        raise UntranslatableError("its arguments by name are no names")
    positional = bind(path, args, kwargs)
    if positional is None:
        told = f"has arguments by name: `{CALL}` hands them on to `{path}`"
        keys = {"callback": CALL, "args": [path, _plain(args), _plain(kwargs)]}
        return keys, [Difference("arguments", told)]
    found: dict[str, Any] = {"callback": path}
    if positional:
        found["args"] = _plain(positional)
    if not kwargs:
        return found, []
    told = f"{', '.join(sorted(kwargs))} had a name, and is an argument by its place now"
    return found, [Difference("arguments", told)]


def _plain(value: Any) -> Any:
    """Return tuples as the lists that JSON makes of them."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value
