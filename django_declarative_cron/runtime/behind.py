"""A look that went behind the last write of a transaction, for the next step of the same pass."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.events import Event
from ..signals import are_received
from ..store.guard import Member
from ..store.peek import Peek


class Behind:
    """Keep what such a look has found, while nobody is known to have acted since."""

    def __init__(self) -> None:
        self._kept: tuple[Member, Peek] | None = None

    def keep(self, member: Member, seen: Peek | None, told: Iterable[Event]) -> None:
        """Keep it in place of the one before.

        Args:
            member: who looked.
            seen: what was found, if anything was asked.
            told: what was told since then: who receives that may act, and is to be seen to.
        """
        self._kept = None if seen is None or are_received(told) else (member, seen)

    def take(self, member: Member) -> Peek | None:
        """Give it once.

        Args:
            member: who would look.
        """
        kept, self._kept = self._kept, None
        return kept[1] if kept is not None and kept[0] is member else None

    def forget(self) -> None:
        """Keep nothing: time has gone by."""
        self._kept = None
