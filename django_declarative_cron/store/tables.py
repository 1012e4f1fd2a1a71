"""Whether the tables can be used, and why the database did not answer, in one sentence."""

from __future__ import annotations

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.migrations.loader import MigrationLoader

from ..models import ScheduledTask

AWAY = "The database does not answer."
REFUSED = "The database refused. `--traceback` shows its answer."


def flaw_of_tables(using: str) -> str | None:
    """Return what keeps the tables from being used, or ``None``."""
    if not _are_there(using):
        return "The tables of scheduled tasks are not there yet"
    if not _are_up_to_date(using):
        return "The tables of scheduled tasks are older than the code"
    return None


def with_cure(flaw: str, using: str) -> str:
    """Return a flaw of the tables as a sentence that names the command to run."""
    where = "" if using == DEFAULT_DB_ALIAS else f" --database {using}"
    return f"{flaw}: run `python manage.py migrate{where}` first."


def why_unavailable(using: str) -> str | None:
    """Return in one sentence why the database cannot be used, ``None`` if it can."""
    try:
        flaw = flaw_of_tables(using)
    except DatabaseError:
        return AWAY
    return None if flaw is None else with_cure(flaw, using)


def _are_there(using: str) -> bool:
    models = apps.get_app_config(ScheduledTask._meta.app_label).get_models()
    needed = {model._meta.db_table for model in models}
    return needed <= set(connections[using].introspection.table_names())


def _are_up_to_date(using: str) -> bool:
    loader = MigrationLoader(connections[using])
    known = {key for key in loader.graph.nodes if key[0] == ScheduledTask._meta.app_label}
    return known <= loader.applied_migrations.keys()
