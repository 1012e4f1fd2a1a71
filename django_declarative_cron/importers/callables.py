"""Callbacks for calls of other schedulers that a declaration cannot express.

``cron import`` writes them. A function of your own that does the same is better.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.module_loading import import_string


def call(path: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call the function of a dotted path with arguments by name."""
    return _function(path)(*args, **kwargs)


def call_do(path: str) -> Any:
    """Instantiate the class of a dotted path and call its method ``do``, as django-cron does."""
    return import_string(path)().do()


def shell(command: str, stdin: str = "") -> None:
    """Run a command line with ``sh``; its output is kept if the run has its own process.

    Args:
        command: from the project's own settings, never from outside.
        stdin: its standard input.

    Raises:
        CalledProcessError: its exit code is not 0.
    """
    subprocess.run(["/bin/sh", "-c", command], input=stdin, text=True, check=True)


def _function(path: str) -> Any:
    """Import a function, or a method of an object such as ``shop.tasks.send.delay``."""
    try:
        return import_string(path)
    except ImportError:
        owner, _, name = path.rpartition(".")
        return getattr(import_string(owner), name)
