"""Django's Tasks: built in since Django 6.0, in the package ``django-tasks`` for 5.2."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

_OF_OPTIONS = (("backend", "backend"), ("queue", "queue_name"), ("priority", "priority"))
_STAND_INS = {
    "immediate": "calls runs in the scheduler itself",
    "dummy": "keeps runs and calls none",
}
_MODULES = ("django.tasks", "django_tasks")
_context: ContextVar[Any] = ContextVar("declarative_cron_task_context", default=None)


class TasksUnavailableError(RuntimeError):
    """Neither Django nor a package has Tasks."""


@dataclass(frozen=True)
class DjangoTask:
    """A Django ``Task`` as a callback."""

    task: Any

    def __call__(self, *args: Any) -> Any:
        """Call the function of the Task, with the context of its backend if it takes one."""
        if self.task.takes_context:
            return self.task.call(_context.get(), *args)
        return self.task.call(*args)


@contextmanager
def within(context: Any) -> Iterator[None]:
    """Provide the context of a backend to Tasks that take one."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)


def is_task(found: Any) -> bool:
    """Return whether an object is a Django ``Task``."""
    modules = (sys.modules.get(f"{name}.base") for name in _MODULES)
    return any(module is not None and isinstance(found, module.Task) for module in modules)


def tasks_module() -> ModuleType:
    """Return the module of Tasks, or raise ``TasksUnavailableError``."""
    for name in _MODULES:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise TasksUnavailableError(
        "Django 5.2 has no Tasks: install django-declarative-cron[tasks], or take Django 6"
    )


def asked_of_engine(function: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``backend``, ``queue_name`` and ``priority`` that a declaration sets.

    Options of the declaration override those of a Django ``Task``.
    """
    asked: dict[str, Any] = {}
    if isinstance(function, DjangoTask):
        asked = {name: getattr(function.task, name) for _, name in _OF_OPTIONS}
    return asked | {name: options[option] for option, name in _OF_OPTIONS if option in options}


def flaw(asked: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return why a backend would refuse runs and a hint, or ``None``; nothing is enqueued."""
    try:
        module = tasks_module()
    except TasksUnavailableError as error:
        return str(error), "Or choose another runner."
    known = sorted(module.task_backends.settings)
    alias = asked.get("backend") or _first(known, module.DEFAULT_TASK_BACKEND_ALIAS)
    if alias not in known:
        return f"TASKS has no backend {alias!r}", f"It has {_listed(known)}."
    try:
        backend = module.task_backends[alias]
        queue, queues = asked.get("queue_name"), sorted(backend.queues)
        if queue is not None and queues and queue not in queues:
            reason = f"the backend {alias!r} of TASKS has no queue {queue!r}"
            return reason, f"It has {_listed(queues)}; add to its QUEUES what a worker serves."
        make_task(_probe, **asked)
    except Exception as error:
        # Backends are foreign code and may raise anything.
        reason = f"the backend {alias!r} of TASKS does not take it: {error}"
        return reason, "Change `options`, or the backend."
    return None


def stand_in(asked: Mapping[str, Any]) -> str | None:
    """Return a warning about a backend without workers, or ``None``."""
    task = make_task(_probe, **asked)
    kind = type(task.get_backend()).__module__.rpartition(".")[2]
    does = _STAND_INS.get(kind)
    return does and f"the backend {task.backend!r} of TASKS is the {kind} one, which {does}"


def _probe(context: Any, run: int, instance: str, deployment: str) -> None:
    """Take the place of a task, to validate the options of its backend."""


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names)) or "none"


def make_task(function: Any, *, is_found: bool = False, **given: Any) -> Any:
    """Return a ``Task`` that its backend accepts.

    Args:
        function: a function of a module.
        is_found: the module has the Task under the name of the function, as backends expect.
        given: ``backend``, ``queue_name`` and ``priority``, if they are set.
    """
    module = tasks_module()
    backends = module.task_backends
    alias = given.get("backend") or _first(backends.settings, module.DEFAULT_TASK_BACKEND_ALIAS)
    backend = backends[alias]
    queue = _first(sorted(backend.queues), module.DEFAULT_TASK_QUEUE_NAME)
    # Django 6.0 has no defaults for these.
    unsaid = {"priority": 0, "run_after": None, "queue_name": queue, "takes_context": True}
    values = {**unsaid, **given, "backend": alias}
    # A backend may have a class of its own, which others do not accept as a Task.
    make = module.Task if is_found and hasattr(module, "Task") else backend.task_class
    return make(func=function, **values)


def _first(known: Any, preferred: str) -> str:
    return preferred if preferred in known or not known else next(iter(known))
