"""Event records in their order, and the freezes between them; pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from .agenda import Record
from .presence import Span

TICK = timedelta(microseconds=1)


class Writer:
    """Word records; an instant never lies before the one of the record before.

    A freeze is cut where something happened in it: what acts is not frozen.
    """

    def __init__(self) -> None:
        self.is_muted = False
        self._last = datetime.min.replace(tzinfo=UTC)
        self._frozen: deque[Span] = deque()

    def freeze(self, spans: Iterable[Span]) -> None:
        """Let some times be frozen.

        Args:
            spans: in any order; what was told already stays as it is.
        """
        self._frozen = deque(sorted([*self._frozen, *spans]))

    def write(self, at: datetime, event: str, **values: Any) -> Iterator[Record]:
        """Give a record, and the freezes before it.

        Args:
            at: its instant.
            event: its name in the theory's alphabet.
            values: its other fields.
        """
        if self.is_muted:
            return
        at = max(at, self._last)
        yield from self._freezes(at)
        self._last = at
        yield {"at": at, "event": event, **values}

    def _freezes(self, at: datetime) -> Iterator[Record]:
        while self._frozen and self._frozen[0][0] < at:
            since, until = self._frozen[0]
            since, thawed = max(since, self._last + TICK), min(until, at)
            if since < thawed:
                yield {"at": since, "event": "Freeze", "until": thawed}
            if until > at:
                return
            self._frozen.popleft()
