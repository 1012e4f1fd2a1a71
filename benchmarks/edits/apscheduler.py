"""APScheduler with its store in the database."""

from __future__ import annotations

from ..lateness import apscheduler
from .acting import Acting


class Case(Acting, apscheduler.Case):
    """A call of the scheduler that runs in this process."""

    def edit(self, name: str, *, pause: bool) -> None:
        """Pause or resume a job.

        Args:
            name: its id.
            pause: rather than resume.
        """
        if pause:
            self._scheduler.pause_job(name)
        else:
            self._scheduler.resume_job(name)
