"""What ``cron import`` was asked for, and what every reader needs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.apps import apps
from django.core.management.base import CommandError
from django.utils.module_loading import import_string

from ... import conf
from ...core.moving.moved import Difference, Moved, UntranslatableError
from ...exceptions import class_of, words_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """Say where to read and how.

    Args:
        source: a dotted path or a file, empty for where the rival itself would look.
        zone: IANA name of the zone of the machine, for what is read by its clock.
        keep_workers: Celery's workers go on running the tasks.
        with_users: each line of a crontab names a user.
        unpickle: rows of a job store may be unpickled, which runs code that they name.
    """

    source: str
    zone: str
    keep_workers: bool = False
    with_users: bool = False
    unpickle: bool = False

    @property
    def project_zone(self) -> str:
        """Return the zone of the project."""
        return conf.project_zone().key


def imported(path: str) -> Any:
    """Import what somebody named.

    Raises:
        CommandError: it is not there, with exit code 2.
    """
    try:
        return import_string(path.replace(":", "."))
    except Exception as error:
        # A module may raise anything while it is imported.
        told = f"{path!r} cannot be imported: {class_of(error)}: {words_of(error)}"
        raise CommandError(told, returncode=2) from error


def rows_of(app: str, model: str, *related: str) -> Iterable[Any]:
    """Return the rows of a rival's table, none where its app is not installed."""
    if not apps.is_installed(app):
        return []
    manager: Any = apps.get_model(app, model)._default_manager
    return list(manager.select_related(*related).order_by("pk"))


def readable(
    rows: Iterable[Any], read: Callable[[Any], T], name_of: Callable[[Any], object]
) -> tuple[list[T], list[Moved]]:
    """Return the rows that can be read, and an entry without a task for each of the others.

    Args:
        rows: of the other scheduler.
        read: reads one row; it may raise anything.
        name_of: names a row that cannot be read.
    """
    found: list[T] = []
    unread: list[Moved] = []
    for row in rows:
        try:
            found.append(read(row))
        except (Exception, RecursionError, MemoryError) as error:
            told = f"it cannot be read: {class_of(error)}: {words_of(error)}"
            unread.append(Moved(str(name_of(row)), None).refused(told))
    return found, unread


def zone_told(zone: str) -> Difference:
    """Return the remark that says in which zone times were read.

    Args:
        zone: IANA name.
    """
    told = f"times of tasks that name no zone are read in {zone}: compare it with the zone before"
    return Difference("zone", told)


def bind(path: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any] | None:
    """Return arguments by name as positional ones, ``None`` where the function does not allow it.

    Raises:
        UntranslatableError: there is no such function to hand them to.
    """
    if not kwargs:
        return args  # Whether it is there is told when the entry is judged.
    try:
        function = import_string(path)
    except Exception as error:
        told = f"`{path}` cannot be imported: {class_of(error)}: {words_of(error)}"
        raise UntranslatableError(told) from error
    try:
        # A task of Celery takes what its function takes, without itself.
        signature = inspect.signature(getattr(function, "run", function))
        bound = signature.bind(*args, **kwargs)
    except Exception:
        # Foreign code answers here; what it refuses is told when the entry is judged.
        return None
    return None if bound.kwargs else list(bound.args)
