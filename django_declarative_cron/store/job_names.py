"""The names of runs for other programs, made with the project's secret key."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from ..conf import job_keys
from ..core.job_id import job_id, run_of


def name_of(run: int | None, scheduled_for: datetime | None) -> UUID | None:
    """Return the name of a run, ``None`` if its row does not say enough.

    Args:
        run: id of its row, if it is known.
        scheduled_for: its occurrence, if it is known.
    """
    if run is None or scheduled_for is None:
        return None
    try:
        return job_id(run, scheduled_for, job_keys()[0])
    except ValueError:
        return None


def runs_of(name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the id of the row that a name may stand for, with each key that may have made it.

    Args:
        name: as anybody may have typed it.
    """
    for key in job_keys():
        run = run_of(name, key)
        if run is not None:
            yield run, key


def is_name_of(name: str, run: int, scheduled_for: datetime, key: bytes) -> bool:
    """Return whether a name is the one that a key gives to a run.

    Args:
        name: as anybody may have typed it.
        run: id of its row.
        scheduled_for: its occurrence.
        key: that may have made the name.
    """
    return str(job_id(run, scheduled_for, key)) == name.lower()
