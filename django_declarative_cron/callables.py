"""Resolve import paths, callables, types and management commands to targets."""

from __future__ import annotations

import inspect
import pkgutil
import shlex
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from django.core.management import BaseCommand, CommandError, call_command, get_commands

from . import handlers
from .core.declarations.declaration import Target
from .core.declarations.problems import Check, UnresolvableError
from .core.declarations.runners import DJANGO_TASKS, EXTERNAL
from .core.declarations.values import nearest
from .django_tasks import DjangoTask, is_task
from .exceptions import words_of
from .handlers import flaw_of_type

_PATH_HINT = 'Write the dotted path of a function, "app.module.function".'
_TYPE_HINT = 'Register a function with `@handler("…")` in the module `tasks` of an installed app.'


@dataclass(frozen=True, slots=True)
class ManagementCommand:
    """A callable that calls a management command.

    Args:
        words: its name and arguments, as on the command line.
    """

    words: tuple[str, ...]

    def __call__(self) -> None:
        """Run the command; an exit code other than 0 is a failure.

        Raises:
            CommandError: the exit code was not 0.
        """
        try:
            call_command(*self.words)
        except SystemExit as leaving:
            if leaving.code not in (None, 0):
                message = f"`{shlex.join(self.words)}` left with exit code {leaving.code}"
                raise CommandError(message) from leaving


def elsewhere(*args: Any) -> None:
    """Take the place of a function that only external workers have.

    Raises:
        RuntimeError: it was called.
    """
    raise RuntimeError("this type has no function in this process")


class Types:
    """Resolve registered types, and nothing else: for callers from outside.

    Args:
        external: accept types without a function here for external workers.
    """

    def __init__(self, *, external: bool = False) -> None:
        self._external = external

    def type(self, given: str) -> Target:
        """Return the target of a type; nothing is imported for it (CRON-04).

        Raises:
            UnresolvableError: no function is registered for it.
        """
        flaw = flaw_of_type(given)
        if flaw is not None:
            raise UnresolvableError(Check.IMPORT_PATH, flaw)
        function = handlers.find(given)
        if function is not None:
            return Target(given, function, is_from_outside=True)
        if self._external:
            return Target(
                *(given, elsewhere), is_importable=False, is_from_outside=True, runner=EXTERNAL
            )
        near = handlers.nearest(given)
        tail = f"; did you mean `{near}`?" if near else ""
        reason = f"`{given}` is not a registered type{tail}"
        raise UnresolvableError(Check.IMPORT_PATH, reason, _TYPE_HINT)

    def callback(self, given: str | Callable[..., Any]) -> Target:
        """Raise ``UnresolvableError``: callers from outside name types only."""
        raise UnresolvableError(Check.IMPORT_PATH, "is not accepted over HTTP")

    def command(self, words: tuple[str, ...]) -> Target:
        """Raise ``UnresolvableError``: callers from outside name types only."""
        raise UnresolvableError(Check.COMMAND, "is not accepted over HTTP")


class Targets:
    """Resolve callables for one reading of a list, so that a broken module is imported once.

    Args:
        importable_only: refuse callables that no dotted path leads to.
    """

    def __init__(self, *, importable_only: bool = False) -> None:
        self._importable_only = importable_only
        self._resolved: dict[str, Target] = {}
        self._refused: dict[str, UnresolvableError] = {}
        self._taken: dict[int, Target] = {}

    def callback(self, given: str | Callable[..., Any]) -> Target:
        """Resolve a dotted path, or accept a callable.

        Raises:
            UnresolvableError: there is nothing there, or nothing that can be called.
        """
        if not isinstance(given, str):
            # The target keeps the callable alive, so its id stays unique.
            if id(given) not in self._taken:
                self._taken[id(given)] = self._direct(given)
            return self._taken[id(given)]
        if given not in self._resolved:
            self._resolved[given] = self._by_path(given)
        return self._resolved[given]

    def type(self, given: str) -> Target:
        """Return the target of a registered type, or resolve a dotted path.

        Raises:
            UnresolvableError: it is neither a registered type nor a path to a callable.
        """
        function = handlers.find(given)
        if function is not None:
            return Target(given, function)
        try:
            return self.callback(given)
        except UnresolvableError as error:
            near = handlers.nearest(given)
            if near is not None:
                hint = f"Did you mean the registered type `{near}`?"
            elif error.hint == _PATH_HINT:
                hint = f"{_TYPE_HINT} {_PATH_HINT}"
            else:
                raise
            raise UnresolvableError(error.check, error.reason, hint) from error

    def command(self, words: tuple[str, ...]) -> Target:
        """Make a management command callable.

        Raises:
            UnresolvableError: no installed app has it.
        """
        known = get_commands()
        if words[0] not in known:
            near = nearest(words[0], known)
            tail = f"; `{near}` exists" if near else ""
            hint = "Write the words that follow `manage.py`."
            raise UnresolvableError(Check.COMMAND, f"`{words[0]}` not found{tail}", hint)
        return Target(shlex.join(words), ManagementCommand(words), is_command=True)

    def _direct(self, function: Callable[..., Any]) -> Target:
        text = name_of(function)
        _require_work(function, text)
        if self._importable_only and not _is_importable(function):
            reason = f"is {_kind_of(function)} (`{text}`), which no dotted path leads to"
            hint = f"Make it a function of a module. {_PATH_HINT}"
            raise UnresolvableError(Check.NOT_IMPORTABLE, reason, hint)
        return Target(text, function, is_importable=_is_importable(function))

    def _by_path(self, path: str) -> Target:
        parts = path.split(".")
        if len(parts) < 2 or not all(part.isidentifier() for part in parts):
            reason = f"{path!r} is not a dotted path"
            raise UnresolvableError(Check.IMPORT_PATH, reason, _PATH_HINT)
        found, depth = self._module_of(parts)
        for position in range(depth, len(parts)):
            found = self._attribute(found, parts[: position + 1])
        if is_task(found):
            return Target(path, DjangoTask(found), runner=DJANGO_TASKS)
        _require_work(found, path)
        return Target(path, found)

    def _module_of(self, parts: list[str]) -> tuple[Any, int]:
        """Import the longest beginning of a path that is a module."""
        for depth in range(len(parts) - 1, 0, -1):
            module = self._imported(".".join(parts[:depth]))
            if module is not None:
                return module, depth
        raise self._refusal(parts[0], partial(_not_found, parts[0], None))

    def _imported(self, name: str) -> ModuleType | None:
        if name in self._refused:
            raise self._refused[name]
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and f"{name}.".startswith(f"{error.name}."):
                return None
            raise self._refusal(name, partial(_broken, name, error)) from error
        except (Exception, SystemExit) as error:
            # A module may raise anything while it is imported.
            raise self._refusal(name, partial(_broken, name, error)) from error

    def _attribute(self, owner: Any, parts: list[str]) -> Any:
        path = ".".join(parts)
        try:
            return getattr(owner, parts[-1])
        except AttributeError:
            raise self._refusal(path, partial(_not_found, path, owner)) from None
        except Exception as error:
            # Modules and classes may compute their attributes.
            raise self._refusal(path, partial(_broken, path, error)) from error

    def _refusal(self, name: str, make: Callable[[], UnresolvableError]) -> UnresolvableError:
        """Return the refusal of a name, made once: imports and searches for near names are slow."""
        if name not in self._refused:
            self._refused[name] = make()
        return self._refused[name].with_traceback(None)


def again(text: str, *, is_command: bool, is_from_outside: bool) -> Target:
    """Resolve in another process the target that a text was taken from.

    For a text that came over HTTP, only a registered type is found (CRON-04).

    Raises:
        UnresolvableError: it is not there.
    """
    known = Types() if is_from_outside else Targets()
    return known.command(tuple(shlex.split(text))) if is_command else known.type(text)


def preload(texts: Iterable[str]) -> None:
    """Import the modules of targets; import errors are reported when a target is called."""
    for text in texts:
        with suppress(UnresolvableError):
            again(text, is_command=False, is_from_outside=False)


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a callable, the same in every process."""
    if isinstance(function, partial):
        return f"functools.partial({name_of(function.func)})"
    for each in (function, type(function)):
        module = getattr(each, "__module__", None)
        name = getattr(each, "__qualname__", None)
        if isinstance(module, str) and isinstance(name, str):
            return f"{module}.{name}"
    return type(function).__name__


def _is_importable(function: Callable[..., Any]) -> bool:
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    name = getattr(function, "__qualname__", None)
    if found is None or not isinstance(name, str):
        return False
    for part in name.split("."):
        found = getattr(found, part, None)
    # A bound method is made anew each time it is looked up.
    return found is function or (inspect.ismethod(function) and found == function)


def _kind_of(function: Callable[..., Any]) -> str:
    name = str(getattr(function, "__qualname__", ""))
    if isinstance(function, partial):
        return "a partial"
    if name.endswith("<lambda>"):
        return "a lambda"
    if "<locals>" in name:
        return "a nested function"
    if inspect.ismethod(function):
        return "a method of an instance"
    if inspect.isroutine(function) or inspect.isclass(function):
        return "not what its module has under that name"
    return "an instance"


def _require_work(found: Any, shown: str) -> None:
    """Raise if an object cannot be called, or does nothing when it is called."""
    hint = _PATH_HINT
    if inspect.ismodule(found):
        reason = f"`{shown}` is a module"
    elif not callable(found):
        reason = f"`{shown}` is a {type(found).__name__}, which cannot be called"
    elif inspect.isclass(found) and issubclass(found, BaseCommand):
        reason = f"`{shown}` is the class of a management command"
        hint = f'Write a dict entry with "command": ["{found.__module__.rpartition(".")[2]}"].'
    elif inspect.isclass(found):
        reason = f"`{shown}` is a class: calling it makes an instance and does nothing with it"
        hint = "Write a function, or a static method of the class, that does the work."
    elif _yields(found) or _yields(getattr(found, "__call__", None)):  # noqa: B004
        reason = f"`{shown}` is a generator function: calling it runs none of its code"
        hint = "Write a function that loops instead of one that yields."
    else:
        return
    raise UnresolvableError(Check.IMPORT_PATH, reason, hint)


def _yields(function: object) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _broken(name: str, error: BaseException) -> UnresolvableError:
    raised = f"{type(error).__name__}: {words_of(error)}"
    reason = f"cannot be imported: importing `{name}` raised {raised}"
    return UnresolvableError(Check.IMPORT_PATH, reason, f"Fix `{name}`.")


def _not_found(path: str, owner: Any) -> UnresolvableError:
    base, dot, last = path.rpartition(".")
    near = nearest(last, _candidates(owner))
    tail, hint = (f"; `{near}` exists", f"Did you mean `{base}{dot}{near}`?") if near else ("", "")
    return UnresolvableError(Check.IMPORT_PATH, f"`{path}` not found{tail}", hint or _PATH_HINT)


def _candidates(owner: Any) -> Iterable[str]:
    """Return the names of callables, classes and modules in an object."""
    if owner is None:
        installed = {module.name for module in pkgutil.iter_modules()}
        return installed - sys.stdlib_module_names
    names = {name for name in dir(owner) if _leads_on(inspect.getattr_static(owner, name, None))}
    return names | {module.name for module in pkgutil.iter_modules(getattr(owner, "__path__", []))}


def _leads_on(value: Any) -> bool:
    return callable(value) or inspect.ismodule(value) or isinstance(value, classmethod)
