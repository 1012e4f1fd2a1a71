"""Check that the tables exist before a command uses them."""

from __future__ import annotations

from django.core.management.base import CommandError

from ..store.database import flaw_of_tables, with_cure


def require_tables(using: str) -> None:
    """Raise ``CommandError``, with exit code 2 and the fix, if tables are missing or too old."""
    flaw = flaw_of_tables(using)
    if flaw is not None:
        raise CommandError(with_cure(flaw, using), returncode=2)
