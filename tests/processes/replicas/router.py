"""Reads from the replica, writes to ``jobs``."""

from __future__ import annotations

from typing import Any


class Router:
    """Send everything of every app there."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "replica"

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "jobs"

    def allow_relation(self, first: Any, second: Any, **hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db == "jobs"
