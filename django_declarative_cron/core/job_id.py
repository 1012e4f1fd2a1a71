"""The name of a run in Open Job Spec: a UUIDv7 that can be read back, so no column keeps it.

==========  =====  ===================================================================
bits        width  what
==========  =====  ===================================================================
time        48     the occurrence of the run, in milliseconds since 1970
version     4      7
check       12     computed from the other two, so that a foreign UUIDv7 is recognised
variant     2      binary 10
run         62     id of the run's row
==========  =====  ===================================================================
"""

from __future__ import annotations

from binascii import crc_hqx
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_TIMES: Final = 1 << 48
_RUNS: Final = 1 << 62
_CHECKS: Final = 1 << 12


def job_id(run: int, scheduled_for: datetime) -> UUID:
    """Name a run for clients of Open Job Spec.

    Args:
        run: id of its row.
        scheduled_for: its occurrence, aware.

    Raises:
        ValueError: the id is no id of a row, or the occurrence lies before 1970.
    """
    time = (scheduled_for - _EPOCH) // _MILLISECOND
    if not 0 < run < _RUNS:
        raise ValueError(f"{run} is no id of a run")
    if not 0 <= time < _TIMES:
        raise ValueError(f"{scheduled_for} has no place in a UUID")
    high = time << 16 | 7 << 12 | _check(time, run)
    return UUID(int=high << 64 | 0b10 << 62 | run)


def run_of(name: UUID | str) -> int | None:
    """Give the id of the row that a name stands for, ``None`` where it is no name of ours.

    Args:
        name: a UUID, or text that may be one.
    """
    try:
        value = (name if isinstance(name, UUID) else UUID(name)).int
    except ValueError:
        return None
    time, rest, run = value >> 80, value >> 62 & 0x3FFFF, value & (_RUNS - 1)
    is_ours = rest == (7 << 12 | _check(time, run)) << 2 | 0b10
    return run if is_ours and run else None


def _check(time: int, run: int) -> int:
    # Of the whole words: a run with another occurrence is another name.
    return crc_hqx(time.to_bytes(6, "big") + run.to_bytes(8, "big"), 0) % _CHECKS
