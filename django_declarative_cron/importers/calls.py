"""The function and the arguments of a foreign task, as keys of an entry."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.module_loading import import_string

from ..core.declarations.values import flaw_of_data
from ..exceptions import class_of, words_of
from .result import ImportedTask, UntranslatableError

CALL: Final = "django_declarative_cron.importers.callables.call"
CALL_DO: Final = "django_declarative_cron.importers.callables.call_do"
SHELL: Final = "django_declarative_cron.importers.callables.shell"

PRINTED: Final = 'what it prints goes where runscheduler prints, and "runner": "process" keeps it'


def add_call(task: ImportedTask, path: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Add the keys that name the function and its arguments.

    Raises:
        UntranslatableError: the arguments are not JSON-native, or there is no such function.
    """
    positional = bind(path, args, kwargs)
    if positional is None:
        task.entry |= {"callback": CALL, "args": _json([path, args, kwargs])}
        task.differ("arguments", f"has arguments by name: `{CALL}` hands them on to `{path}`")
        return
    task.entry["callback"] = path
    if positional:
        task.entry["args"] = _json(positional)
    if kwargs:
        names = ", ".join(sorted(kwargs))
        task.differ("arguments", f"{names} had a name, and is an argument by its place now")


def _json(value: Any) -> Any:
    plain = _plain(value)
    flaw = flaw_of_data(plain)
    if flaw is not None:
        raise UntranslatableError(f"what it is called with {flaw}: only JSON can be declared")
    return plain


def bind(path: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any] | None:
    """Return all arguments as positional ones, ``None`` where the function does not allow it."""
    if not kwargs:
        return args  # Whether the function exists is checked with the whole entry.
    try:
        function = import_string(path)
    except Exception as error:
        text = f"`{path}` cannot be imported: {class_of(error)}: {words_of(error)}"
        raise UntranslatableError(text) from error
    try:
        # A task of Celery has its function, without `self`, as `run`.
        signature = inspect.signature(getattr(function, "run", function))
        bound = signature.bind(*args, **kwargs)
    except Exception:
        # Foreign code may raise anything here; the check of the whole entry reports it.
        return None
    return None if bound.kwargs else list(bound.args)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value
