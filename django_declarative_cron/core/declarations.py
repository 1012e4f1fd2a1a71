"""The digest of a registration set."""

from __future__ import annotations

from collections.abc import Iterable

from .declaration import Declaration
from .terms import digest_of


def digest_of_set(declarations: Iterable[Declaration]) -> str:
    """Return a short text that changes whenever a registration set does; the order says nothing.

    Args:
        declarations: the whole set.
    """
    lines = [f"{each.name}\0{each.digest()}" for each in declarations]
    return digest_of("\n".join(sorted(lines)))
