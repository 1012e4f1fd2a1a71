"""The limits of what one task may declare: as a database stores it, and as people read it.

Settings, the HTTP binding and the importers all read declarations through ``core``, so they
share these limits.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final

from ..cron import LONGEST_EXPRESSION

LONGEST_NAME: Final = 255
LONGEST_DESCRIPTION: Final = 2_000
LONGEST_PATH: Final = 200
"""Characters of an import path or a type."""

LONGEST_DATA: Final = 65_536
"""Characters of all arguments or options together, as JSON."""

MOST_WORDS: Final = 200
MOST_TAGS: Final = 50
MOST_PROBLEMS: Final = 20
"""The most problems that one answer or one message lists."""

MOST_WHOLE: Final = 2**31 - 1
"""The largest whole number that every database counts to."""


def too_long(text: str, most: int) -> str | None:
    """Return why a text is refused for its length, or ``None``.

    Args:
        text: as given.
        most: number of characters that are accepted.
    """
    return None if len(text) <= most else f"must have at most {most} characters, found {len(text)}"


def too_many(items: Collection[Any], most: int) -> str | None:
    """Return why a list is refused for its length, or ``None``.

    Args:
        items: as given.
        most: number of items that are accepted.
    """
    return None if len(items) <= most else f"must have at most {most} items, found {len(items)}"


def too_large(data: Any) -> str | None:
    """Return why JSON-native data is refused for its size, or ``None``.

    Args:
        data: arguments or options.
    """
    try:
        size = len(json.dumps(data, ensure_ascii=False, default=str))
    except (TypeError, ValueError, RecursionError):
        # Another check refuses it: it is no JSON at all.
        return None
    if size <= LONGEST_DATA:
        return None
    return f"must have at most {LONGEST_DATA} characters as JSON, found {size}"


__all__ = [
    "LONGEST_DATA",
    "LONGEST_DESCRIPTION",
    "LONGEST_EXPRESSION",
    "LONGEST_NAME",
    "LONGEST_PATH",
    "MOST_PROBLEMS",
    "MOST_TAGS",
    "MOST_WHOLE",
    "MOST_WORDS",
    "too_large",
    "too_long",
    "too_many",
]
