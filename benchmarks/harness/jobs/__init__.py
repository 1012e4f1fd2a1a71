"""An app with nothing in it but what every contender calls: functions that do nothing."""

from __future__ import annotations


def nothing(*args: object, **kwargs: object) -> None:
    """Do nothing.

    Args:
        args: whatever a contender hands over.
        kwargs: the same.
    """
