"""How the process that forks runs is started: through the entry point of this process.

A ``manage.py`` may prepare more than the environment, such as class-based settings or a module
in the place of another one. A fork server that did not run it would lack that.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from django.utils.autoreload import get_child_arguments

OPTION = "--fork-server"

_COMMAND = "runscheduler"

_is_command = False


@dataclass(frozen=True, slots=True)
class Order:
    """What a fork server is told when it is started.

    Args:
        control: descriptor of its conversation with the scheduler.
        errors: descriptor of the standard error for the time after loading.
        paths: of the callbacks that it imports.
        path: the scheduler's ``sys.path``.
        python_path: the scheduler's ``PYTHONPATH``, ``None`` where it has none.
    """

    control: int
    errors: int
    paths: list[str]
    path: list[str]
    python_path: str | None

    @classmethod
    def of(cls, control: int, errors: int, paths: Iterable[str]) -> Order:
        """Return the order for a server of this process."""
        return cls(control, errors, sorted(paths), sys.path, os.environ.get("PYTHONPATH"))

    @classmethod
    def read(cls, text: str) -> Order:
        """Return the order that an argument spells."""
        return cls(**json.loads(text))

    def __str__(self) -> str:
        return json.dumps(asdict(self))


def is_command() -> None:
    """Note that this process was started as a management command, on the command line."""
    global _is_command
    _is_command = True


def arguments(order: Order) -> list[str]:
    """Return the command line of a fork server."""
    if _is_command:
        try:
            ours = [str(each) for each in get_child_arguments()]
        except RuntimeError:
            pass  # What started this process is no file, as with `python -c`.
        else:
            return [*ours[: len(ours) - len(sys.argv[1:])], _COMMAND, OPTION, str(order)]
    return [sys.executable, "-c", _BOOTSTRAP, str(order)]


def environment(order: Order) -> Mapping[str, str]:
    """Return the environment of a fork server, which finds the modules that this process finds."""
    if not _is_command:
        return os.environ
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, order.path))}


_BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])['path'];"
    " import django; django.setup();"
    f" from {__package__}.fork_server import main;"
    " main(sys.argv[1])"
)
