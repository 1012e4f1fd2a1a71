"""What is stored, as far as a plan needs it; nothing is written here."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet

from ..core.declaration import Declaration
from ..core.reconcile import Plan, Stored, plan
from ..exceptions import TaskListMismatchError
from ..models import Origin, ScheduledTask, SchedulerState
from . import rows
from .guard import Member

_PLANNED = ("name", "cron", "timezone", "retry_delay", "digest", "origin")


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


def mismatch(member: Member, declarations: Iterable[Declaration]) -> TaskListMismatchError | None:
    """Say how the rows differ from a registration set in their names, or ``None``.

    Args:
        member: who holds the set.
        declarations: the set.
    """
    tasks = ScheduledTask.objects.using(member.using)
    try:
        require_match(tasks.filter(scheduler__deployment=member.deployment), declarations)
    except TaskListMismatchError as error:
        return error
    return None


def stored(tasks: QuerySet[ScheduledTask]) -> dict[str, Stored]:
    """Give what a plan needs of rows, by name.

    Args:
        tasks: the rows.
    """
    return {row[0]: rows.stored_of(row) for row in tasks.values_list(*_PLANNED)}


def require_match(tasks: QuerySet[ScheduledTask], declarations: Iterable[Declaration]) -> None:
    """Demand that there is a row for each declared task and, of settings, for no other.

    Args:
        tasks: the rows of the deployment.
        declarations: the whole set.

    Raises:
        TaskListMismatchError: it is not so.
    """
    expected = {declaration.name for declaration in declarations}
    actual = set(tasks.filter(origin=Origin.SETTINGS).values_list("name", flat=True))
    if expected != actual:
        raise TaskListMismatchError(expected, actual)
