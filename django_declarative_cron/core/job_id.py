"""The name of a run in Open Job Spec: a UUIDv7 that only the holder of a key can make or read.

==========  =====  ===================================================================
bits        width  meaning
==========  =====  ===================================================================
time        48     the occurrence of the run, in milliseconds since 1970
version     4      7
variant     2      binary 10
hidden      74     id of the run's row, encrypted
==========  =====  ===================================================================

No column keeps the name. The 74 hidden bits are a keyed permutation of the id, a Feistel
network of eight rounds with BLAKE2b, so a name tells nobody the name of another run.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Final
from uuid import UUID

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_TIMES: Final = 1 << 48
_RUNS: Final = 1 << 62
_HALF: Final = 37
_MASK: Final = (1 << _HALF) - 1
_ROUNDS: Final = range(8)


def job_id(run: int, scheduled_for: datetime, key: bytes) -> UUID:
    """Return the name of a run for clients of Open Job Spec.

    Args:
        run: id of its row.
        scheduled_for: its occurrence, aware.
        key: secret of the deployment, at most 64 bytes.

    Raises:
        ValueError: the id is no id of a row, or the occurrence lies before 1970.
    """
    time = (scheduled_for - _EPOCH) // _MILLISECOND
    if not 0 < run < _RUNS:
        raise ValueError(f"{run} is no id of a run")
    if not 0 <= time < _TIMES:
        raise ValueError(f"{scheduled_for} has no place in a UUID")
    left, right = run >> _HALF, run & _MASK
    for place in _ROUNDS:
        left, right = right, left ^ _mixed(place, time, right, key)
    hidden = left << _HALF | right
    return UUID(int=time << 80 | 7 << 76 | hidden >> 62 << 64 | 0b10 << 62 | hidden & (_RUNS - 1))


def run_of(name: UUID | str, key: bytes) -> int | None:
    """Return the id of the row that a name may stand for, ``None`` if it stands for none.

    A name that was made with another key may give the id of another row: make the name of
    that row and compare.

    Args:
        name: a UUID, or text that may be one.
        key: as for ``job_id``.
    """
    try:
        value = (name if isinstance(name, UUID) else UUID(name)).int
    except ValueError:
        return None
    time, hidden = value >> 80, (value >> 64 & 0xFFF) << 62 | value & (_RUNS - 1)
    left, right = hidden >> _HALF, hidden & _MASK
    for place in reversed(_ROUNDS):
        left, right = right ^ _mixed(place, time, left, key), left
    run = left << _HALF | right
    is_version_7 = value >> 76 & 0xF == 7 and value >> 62 & 0b11 == 0b10
    return run if is_version_7 and 0 < run < _RUNS else None


def _mixed(place: int, time: int, half: int, key: bytes) -> int:
    text = bytes([place]) + time.to_bytes(6, "big") + half.to_bytes(5, "big")
    return int.from_bytes(blake2b(text, digest_size=8, key=key).digest(), "big") & _MASK
