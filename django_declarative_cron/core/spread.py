"""A later start for tasks that would all start at once: the same one for a name, for good.

The occurrences of a task move by it: what the task's history, its previews and its runs are
told is the instant at which it runs.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Final

SECOND: Final = timedelta(seconds=1)
LONGEST_SPREAD: Final = timedelta(days=1)


def offset_of(name: str, spread: timedelta) -> timedelta:
    """Give by how much the occurrences of a task are later than its expression says.

    Args:
        name: of the task; it alone decides, in every process and on every machine.
        spread: the result is less than this, in whole seconds.
    """
    seconds = spread // SECOND
    if seconds < 1:
        return timedelta(0)
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % seconds * SECOND
