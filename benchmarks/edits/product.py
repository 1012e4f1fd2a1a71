"""The product."""

from __future__ import annotations

from datetime import UTC, datetime

from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act

from ..lateness import product
from .acting import Acting


class Case(Acting, product.Case):
    """The acts of the admin and of the commands."""

    instants = 5
    due = 100

    def edit(self, name: str, *, pause: bool) -> None:
        """Pause or resume a task.

        Args:
            name: of the task.
            pause: rather than resume.
        """
        act = Act("benchmark", datetime.now(UTC))
        if pause:
            operator_actions.pause([name], act)
        else:
            operator_actions.resume([name], act)
