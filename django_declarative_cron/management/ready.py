"""Whether the tables are there, before a command needs them."""

from __future__ import annotations

from django.core.management.base import CommandError

from ..store.database import flaw_of_tables, with_cure


def require_tables(using: str) -> None:
    """Refuse to go on where the tables are missing or older than the code.

    Raises:
        CommandError: with exit code 2, in one sentence that names the command to run.
    """
    flaw = flaw_of_tables(using)
    if flaw is not None:
        raise CommandError(with_cure(flaw, using), returncode=2)
