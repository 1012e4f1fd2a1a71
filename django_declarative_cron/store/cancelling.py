"""Asking runs to end: written down by whoever asks, found by whoever calls them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from ..models import Outcome, TaskRun
from . import database
from .guard import LONG_AGO, Member


def request(using: str, deployment: str, runs: Collection[int], now: datetime) -> int:
    """Ask runs in progress to end.

    Args:
        using: database alias.
        deployment: its name.
        runs: ids of their rows.
        now: the instant.

    Returns:
        how many are in progress and had not been asked before.
    """
    with database.atomic(using):
        open_runs = TaskRun.objects.using(using).filter(
            scheduler__deployment=deployment,
            pk__in=list(runs),
            outcome=Outcome.RUNNING,
            cancel_requested_at=None,
        )
        # MySQL cannot change a table that it asks another one about in the same statement.
        found = list(open_runs.values_list("pk", flat=True))
        asked = TaskRun.objects.using(using).filter(pk__in=found, outcome=Outcome.RUNNING)
        return asked.update(cancel_requested_at=now)


def requested(member: Member) -> list[int]:
    """Give the runs of an instance that are to end.

    Args:
        member: who calls them.
    """
    with database.direct(member.using):
        return list(to_end(member.using, member.instance).values_list("pk", flat=True))


def to_end(using: str, instance: UUID) -> QuerySet[TaskRun]:
    """Give the rows of an instance's runs that were asked to end and have not.

    Args:
        using: database alias.
        instance: who calls them.
    """
    # SQLite has no use for an index where it is asked for what is not null.
    return TaskRun.objects.using(using).filter(
        instance=instance, running_slot__isnull=False, cancel_requested_at__gt=LONG_AGO
    )
