"""Callbacks for what other schedulers called in ways that a declaration has no words for.

``cron import`` writes them; a function of one's own that does the same is always better.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.module_loading import import_string


def call(path: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function with arguments by name.

    Args:
        path: dotted path of the function.
        args: its positional arguments.
        kwargs: its arguments by name.
    """
    return _function(path)(*args, **kwargs)


def do(path: str) -> Any:
    """Make an object of a class and call its method ``do``, as django-cron does.

    Args:
        path: dotted path of the class.
    """
    return import_string(path)().do()


def shell(command: str, fed: str = "") -> None:
    """Give a command line to ``sh``; what it prints is kept where its run is a process.

    Args:
        command: of the project's own settings, never from outside.
        fed: its standard input.

    Raises:
        CalledProcessError: its exit code was not 0.
    """
    subprocess.run(["/bin/sh", "-c", command], input=fed, text=True, check=True)


def _function(path: str) -> Any:
    """Import a function, or a method of an object such as ``shop.tasks.send.delay``."""
    try:
        return import_string(path)
    except ImportError:
        owner, _, name = path.rpartition(".")
        return getattr(import_string(owner), name)
