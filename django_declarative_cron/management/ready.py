"""Whether the tables are there, before a command needs them."""

from __future__ import annotations

from django.apps import apps
from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.loader import MigrationLoader

from ..models import ScheduledTask


def require_tables(using: str) -> None:
    """Refuse to go on where the tables are missing or older than the code.

    Args:
        using: database alias.

    Raises:
        CommandError: with exit code 2, in one sentence that names the command to run.
    """
    flaw = flaw_of_tables(using)
    if flaw is not None:
        where = "" if using == DEFAULT_DB_ALIAS else f" --database {using}"
        raise CommandError(f"{flaw}: run `python manage.py migrate{where}` first.", returncode=2)


def flaw_of_tables(using: str) -> str | None:
    """Say what keeps the tables from being used, or ``None``.

    Args:
        using: database alias.
    """
    if not _are_there(using):
        return "The tables of scheduled tasks are not there yet"
    if not _are_up_to_date(using):
        return "The tables of scheduled tasks are older than the code"
    return None


def _are_there(using: str) -> bool:
    models = apps.get_app_config(ScheduledTask._meta.app_label).get_models()
    needed = {model._meta.db_table for model in models}
    return needed <= set(connections[using].introspection.table_names())


def _are_up_to_date(using: str) -> bool:
    loader = MigrationLoader(connections[using])
    known = {key for key in loader.graph.nodes if key[0] == ScheduledTask._meta.app_label}
    return known <= loader.applied_migrations.keys()
