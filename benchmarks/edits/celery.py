"""celery-beat with the database scheduler."""

from __future__ import annotations

from django_celery_beat.models import PeriodicTask

from ..lateness import celery
from .acting import Acting


class Case(Acting, celery.Case):
    """A row that is saved, as its admin does."""

    def edit(self, name: str, *, pause: bool) -> None:
        """Disable or enable a task.

        Args:
            name: of the task.
            pause: rather than resume.
        """
        task = PeriodicTask.objects.get(name=name)
        task.enabled = not pause
        task.save()
