"""How many requests a caller has: a bucket of its own in each process, and no database."""

from __future__ import annotations

import math
import threading
from typing import Final

from .responses import RefusedError

MINUTE: Final = 60.0
_MOST: Final = 10_000


class Rates:
    """Count the requests of callers; each may save up those of one minute."""

    def __init__(self) -> None:
        self._book = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def spend(self, caller: str, per_minute: int, now: float) -> None:
        """Count one request.

        Raises:
            RefusedError: 429, with the seconds to wait.
        """
        pace = per_minute / MINUTE
        with self._book:
            left = self._has(caller, per_minute, now)
            self._left.pop(caller, None)
            allowed = left >= 1
            # Put back at the end: whoever was silent longest is forgotten first.
            self._left[caller] = (left - 1 if allowed else left, now)
            if len(self._left) > _MOST:
                self._left.pop(next(iter(self._left)))
        if not allowed:
            wait = max(math.ceil((1 - left) / pace), 1)
            raise RefusedError(
                429,
                "rate_limited",
                f"Too many requests: at most {per_minute} a minute.",
                details={"retry_after": wait},
                headers={"Retry-After": str(wait)},
            )

    def is_spent(self, caller: str, per_minute: int, now: float) -> bool:
        """Return whether the next request would be refused, and count none."""
        with self._book:
            return self._has(caller, per_minute, now) < 1

    def _has(self, caller: str, per_minute: int, now: float) -> float:
        left, since = self._left.get(caller, (float(per_minute), now))
        return min(per_minute, left + max(now - since, 0.0) * per_minute / MINUTE)
