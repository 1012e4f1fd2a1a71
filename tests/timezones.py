"""Times as the project's clocks show them: its zone is chosen by the environment."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from django.conf import settings

PROJECT = settings.TIME_ZONE
"""The zone that a session tests in."""


def local_time(utc: str) -> str:
    """Give an instant as pages and commands show it.

    Args:
        utc: such as ``2026-11-28 10:00:30``, without seconds where none are shown.
    """
    local = datetime.fromisoformat(utc).replace(tzinfo=UTC).astimezone(ZoneInfo(PROJECT))
    civil = local.replace(tzinfo=None).isoformat(" ", "seconds" if utc[16:] else "minutes")
    return f"{civil} {local.tzname()}"


def zoned(civil: str) -> str:
    """Give a time of the project's clocks as pages and commands show it.

    Args:
        civil: such as ``2026-11-28 10:00``.
    """
    return f"{civil} {instant_of(civil).astimezone(ZoneInfo(PROJECT)).tzname()}"


def instant_of(civil: str) -> datetime:
    """Give the instant at which the project's clocks show a time.

    Args:
        civil: such as ``2026-11-28 10:00``.
    """
    return datetime.fromisoformat(civil).replace(tzinfo=ZoneInfo(PROJECT)).astimezone(UTC)
