"""What is stored, as far as a plan or an idle look needs it; nothing is written here."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet

from ..core.declaration import Declaration
from ..core.reconcile import Plan, Stored, plan
from ..models import ScheduledTask, SchedulerState
from . import rows
from .guard import Member

_PLANNED = ("name", "cron", "timezone", "retry_delay", "digest")


def plan_for(using: str, deployment: str, declarations: Iterable[Declaration]) -> Plan:
    """Compare what is declared with the rows; write nothing.

    Args:
        using: database alias.
        deployment: its name.
        declarations: the whole set.
    """
    tasks = ScheduledTask.objects.using(using).filter(scheduler__deployment=deployment)
    return plan(declarations, stored(tasks))


def active_digest(using: str, deployment: str) -> str | None:
    """Give the digest of the active registration set in one query.

    Args:
        using: database alias.
        deployment: its name.
    """
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    return states.values_list("digest", flat=True).first()


def count(member: Member) -> int:
    """Count the rows of a deployment.

    Args:
        member: who asks.
    """
    tasks = ScheduledTask.objects.using(member.using)
    return tasks.filter(scheduler__deployment=member.deployment).count()


def stored(tasks: QuerySet[ScheduledTask]) -> dict[str, Stored]:
    """Give what a plan needs of rows, by name.

    Args:
        tasks: the rows.
    """
    return {row[0]: rows.stored_of(row) for row in tasks.values_list(*_PLANNED).iterator()}
