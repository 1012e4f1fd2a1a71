"""Callbacks of the tasks of these tests."""

from __future__ import annotations

BROKEN: set[str] = set()


def well() -> None:
    """Return."""


def sometimes() -> None:
    """Fail while a test wants it to."""
    if "sometimes" in BROKEN:
        raise ValueError("it went wrong")


def fails() -> None:
    """Fail each time."""
    raise ValueError("it went wrong")
