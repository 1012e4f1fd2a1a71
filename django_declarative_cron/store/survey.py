"""What is stored, as far as a plan needs it; nothing is written here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import BooleanField, ExpressionWrapper, QuerySet

from ..core.declaration import Declaration
from ..core.reconcile import Plan, Row, plan
from ..exceptions import TaskListMismatchError
from ..models import Origin, ScheduledTask, SchedulerState
from . import dead, marks
from .guard import Locked, Member

_CHUNK = 2000
_PLANNED = ("name", "cron", "timezone", "retry_delay", "digest", "origin")


def plan_for(using: str, deployment: str, declarations: Collection[Declaration]) -> Plan:
    """Compare what is declared with the rows; write nothing.

    Args:
        using: database alias.
        deployment: its name.
        declarations: the whole set.
    """
    tasks = ScheduledTask.objects.using(using).filter(scheduler__deployment=deployment)
    stored = tasks.order_by().values_list(*_PLANNED)
    return plan(declarations, stored.iterator(chunk_size=_CHUNK))


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


@dataclass(frozen=True, slots=True)
class Survey:
    """What an initialisation finds.

    Args:
        plan: what the rows are to become.
        is_calm: the instance is a new one, nobody has died, no run is in progress and no mark
            lies ahead of the clock: beside the plan, there is nothing to be done.
    """

    plan: Plan
    is_calm: bool


def survey(
    held: Locked, member: Member, declarations: Sequence[Declaration], now: datetime
) -> Survey:
    """Compare what is declared with the rows, and see whether that is all.

    Args:
        held: the locked row of the deployment.
        member: who initialises.
        declarations: the whole set.
        now: the instant of the initialisation.
    """
    if held.is_new:
        return Survey(plan(declarations, ()), is_calm=False)
    # What is asked of no row in particular is found out once, and said beside each of them.
    is_to_do = marks.ahead_of(now) | dead.is_lost() | dead.is_anybody(held, member)
    flag = ExpressionWrapper(is_to_do, output_field=BooleanField())
    tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row).order_by()
    asked = tasks.annotate(is_to_do=flag).values_list(*_PLANNED, "is_to_do")
    flags: set[bool | None] = set()

    def rows() -> Iterator[Row]:
        for row in asked.iterator(chunk_size=_CHUNK):
            flags.add(row[-1])
            yield row[:-1]

    todo = plan(declarations, rows())
    return Survey(todo, is_calm=bool(flags) and not any(flags))


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
