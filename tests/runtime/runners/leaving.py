"""Callbacks that leave their thread and connection altered, and callbacks that look for that."""

from __future__ import annotations

import decimal
from contextvars import ContextVar
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection
from django.urls import get_urlconf, set_urlconf
from django.utils import timezone, translation

_variable = ContextVar("variable", default="untouched")


def leaves_everything() -> None:
    """Change everything that belongs to a thread, a context or a connection."""
    translation.activate("fr")
    timezone.activate("Asia/Tokyo")
    set_urlconf("tests.nowhere")
    decimal.getcontext().prec = 3
    _variable.set("changed")
    _leave_on_connection()


async def leaves_everything_asynchronously() -> None:
    """Do the same in a coroutine."""
    translation.activate("fr")
    timezone.activate("Asia/Tokyo")
    set_urlconf("tests.nowhere")
    decimal.getcontext().prec = 3
    _variable.set("changed")
    await sync_to_async(_leave_on_connection)()


def sees() -> dict[str, Any]:
    """Return everything that another run may have changed."""
    return {**_of_context(), **_of_connection()}


async def sees_asynchronously() -> dict[str, Any]:
    """Do the same in a coroutine."""
    return {**_of_context(), **await sync_to_async(_of_connection)()}


def _leave_on_connection() -> None:
    connection.force_debug_cursor = True
    connection.tenant = "t1"  # type: ignore[attr-defined]
    with connection.cursor() as cursor:
        for statement in _STATEMENTS.get(connection.vendor, ()):
            cursor.execute(statement)


_STATEMENTS = {
    "postgresql": ("SET statement_timeout = 12345", "SET search_path = pg_catalog"),
    "sqlite": ("PRAGMA cache_size = 12345",),
}
_QUESTIONS = {
    "postgresql": ("SHOW statement_timeout", "SHOW search_path"),
    "sqlite": ("PRAGMA cache_size",),
}


def _of_context() -> dict[str, Any]:
    return {
        "language": translation.get_language(),
        "zone": timezone.get_current_timezone_name(),
        "urlconf": get_urlconf(),
        "precision": decimal.getcontext().prec,
        "variable": _variable.get(),
    }


def _of_connection() -> dict[str, Any]:
    found: dict[str, Any] = {
        "debug": connection.force_debug_cursor,
        "tenant": getattr(connection, "tenant", None),
    }
    with connection.cursor() as cursor:
        for question in _QUESTIONS.get(connection.vendor, ()):
            cursor.execute(question)
            found[question] = str(cursor.fetchone()[0])
    return found
