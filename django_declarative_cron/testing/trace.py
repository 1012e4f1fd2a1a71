"""The event records of a simulation, for the judge."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from ..core.declaration import Declaration

Record = dict[str, Any]


class Trace:
    """Actions in their order; those of one instant keep it, each at its own position."""

    def __init__(self) -> None:
        self._records: list[Record] = []

    def action(self, event: str, at: datetime, **values: Any) -> None:
        """Write down an action.

        Args:
            event: its name in the theory's alphabet.
            at: its instant.
            values: its other fields.
        """
        self._records.append({"at": at, "event": event, **values})

    def freeze(self, since: datetime, until: datetime) -> None:
        """Write down that nothing could work for a while (004 Frozen).

        Args:
            since: its start, covered.
            until: its end, not covered.
        """
        if since < until:
            self._records.append({"at": since, "event": "Freeze", "until": until})

    def up_to(self, now: datetime) -> list[Record]:
        """Give all records, closed by a tick.

        Args:
            now: where the trace ends.
        """
        return [*self._records, {"at": now, "event": "Tick"}]


def described(declarations: Iterable[Declaration]) -> list[Record]:
    """Give a registration list as the records carry it.

    Args:
        declarations: the set.
    """
    return [
        {
            "name": declaration.name,
            "cron": declaration.cron,
            "retry_delay": declaration.retry_delay,
            "timezone": declaration.timezone,
        }
        for declaration in declarations
    ]
