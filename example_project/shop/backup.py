"""Copies of the SQLite database, taken while web and scheduler go on."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

from django.db import connection

from .files import folder

KEPT = 7


class BackupError(Exception):
    """A copy was taken and is not sound."""


def back_up(at: datetime) -> Path:
    """Copy the database, look whether the copy is sound, and keep the newest ``KEPT``.

    Args:
        at: names the copy; taking it again replaces it.

    Returns:
        the copy.

    Raises:
        BackupError: the copy is not sound; the older ones are kept.
    """
    path = folder("backups") / f"shop-{at:%Y-%m-%dT%H%M}.sqlite3"
    unfinished = path.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    _copy(unfinished)
    os.replace(unfinished, path)
    for old in sorted(path.parent.glob("shop-*.sqlite3"))[:-KEPT]:
        old.unlink()
    return path


def flaw_of(copy: sqlite3.Connection) -> str | None:
    """Give what SQLite finds wrong with a database.

    Args:
        copy: connection to it.
    """
    (found,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
    return None if found == "ok" else found


def _copy(path: Path) -> None:
    connection.ensure_connection()
    with closing(sqlite3.connect(path)) as copy:
        connection.connection.backup(copy)
        # One file that can be carried away, without a log beside it.
        copy.execute("PRAGMA journal_mode = DELETE")
        flaw = flaw_of(copy)
    if flaw is not None:
        raise BackupError(f"The copy {path} is not sound: {flaw}")
