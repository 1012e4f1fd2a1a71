"""The request of ``cron import``, and helpers to read the tasks of another scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.core.management.base import CommandError
from django.utils.module_loading import import_string

from .. import conf
from ..exceptions import class_of, words_of
from .result import Difference


@dataclass(frozen=True, slots=True)
class Request:
    """Where to read tasks, and how."""

    source: str
    """A dotted path or a file; empty for the place that the scheduler itself uses."""
    zone: str
    """Zone of the machine, for crontabs."""
    keep_workers: bool = False
    with_users: bool = False
    unpickle: bool = False
    """Whether rows of a job store may be unpickled, which runs code that they name."""

    @property
    def project_zone(self) -> str:
        return conf.project_zone().key


def imported(path: str) -> Any:
    """Import an object that the user named."""
    try:
        return import_string(path.replace(":", "."))
    except Exception as error:
        # A module may raise anything while it is imported.
        text = f"{path!r} cannot be imported: {class_of(error)}: {words_of(error)}"
        raise CommandError(text, returncode=2) from error


def rows_of(app: str, model: str, *related: str) -> list[Any]:
    """Return the rows of a table, none where its app is not installed."""
    if not apps.is_installed(app):
        return []
    manager: Any = apps.get_model(app, model)._default_manager
    return list(manager.select_related(*related).order_by("pk"))


def zone_difference(zone: str) -> Difference:
    """Return the remark that names the zone in which times were read."""
    text = f"times of tasks that name no zone are read in {zone}: compare it with the zone before"
    return Difference("zone", text)
