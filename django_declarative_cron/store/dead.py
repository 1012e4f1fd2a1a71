"""Who of the scheduler instances is dead, and what becomes of their runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from ..conf import external_workers
from ..core import events
from ..core.vigil import Watch
from ..models import Outcome, ScheduledTask, SchedulerInstance, TaskRun
from . import database, vigil
from .active import ACTIVE
from .declared import is_external
from .guard import LONG_AGO, Locked, Member
from .interrupting import interrupt


def has_living_holder(
    member: Member, digest: str, kept: Watch | None, own: Watch | None, now: datetime
) -> bool:
    """Tell whether any living instance holds a registration set.

    Args:
        member: who asks.
        digest: of the set.
        kept: what is known of the watch over the deployment.
        own: the watch of who asks.
        now: the database's time.
    """
    holders = SchedulerInstance.objects.using(member.using).filter(
        scheduler__deployment=member.deployment,
        digest=digest,
        stopped_at=None,
        heartbeat_at__gt=LONG_AGO,
    )
    # Who asks holds another one, whatever was written of it before.
    heard = (
        holders.exclude(id=member.instance)
        .order_by("-heartbeat_at")
        .values_list("heartbeat_at", flat=True)
    )
    newest = heard.first()
    if newest is None or newest > now - member.longest_silence:
        return newest is not None
    return bool(newest > vigil.silent_since(member, kept, own, now, otherwise=LONG_AGO))


def reap(held: Locked, member: Member, now: datetime) -> list[events.Event]:
    """End the runs of dead processes as interrupted (semantics 3, "who is dead").

    A silent process may only have been kept from the database, as everybody was.
    So silence counts where the deployment was watched for as long without a gap;
    otherwise only those count that gave themselves up. A run whose row, or whose task's
    row, somebody else holds is left for another time, and its process is not buried. One
    whose own row is held cannot say that it lives, so that its silence says nothing.

    Args:
        held: the locked row of the deployment.
        member: who leads.
        now: the instant of the tick.
    """
    silent = _silent(held, member)
    told = interrupt(held, member, _runs_of_the_dead(held, member, silent), now)
    _bury(held, member, silent)
    return told


def is_anybody(held: Locked, member: Member) -> Q:
    """Ask whether ``reap`` may find anything, or who leads has been here before.

    That is: its own instance or a silent one, or a run that is not its own.

    Args:
        held: the locked row of the deployment.
        member: who leads.
    """
    instances = SchedulerInstance.objects.using(member.using)
    found = instances.filter(Q(id=member.instance) | _is_silent(held, member))
    others = _runs_in_processes(held, member).exclude(instance=member.instance)
    return Q(Exists(found)) | Q(Exists(others))


def silent_since(held: Locked, member: Member) -> datetime:
    """Give since when a process must have been silent to count as dead.

    Args:
        held: the locked row of the deployment.
        member: who leads.
    """
    kept, own = vigil.kept_in(held.row), held.bid.watched
    return vigil.silent_since(member, kept, own, held.database_now, otherwise=LONG_AGO)


def _is_silent(held: Locked, member: Member) -> Q:
    since = silent_since(held, member)
    return Q(scheduler=held.row, stopped_at=None, heartbeat_at__lte=since)


def _silent(held: Locked, member: Member) -> list[UUID]:
    """Lock the silent instances; leave out those whose row somebody else holds."""
    known = SchedulerInstance.objects.using(member.using).exclude(id=member.instance)
    silent = known.filter(_is_silent(held, member))
    return [row.pk for row in database.lockable(member.using, silent.order_by("pk").only("pk"))]


def expire(
    held: Locked, member: Member, now: datetime, due: Sequence[ScheduledTask]
) -> list[events.Event]:
    """End the runs of external workers that are not heard of any more.

    Args:
        held: the locked row of the deployment.
        member: who leads.
        now: the instant of the tick.
        due: the tasks that are considered; a run may outlive the option that allowed it.
    """
    if not (external_workers() or any(is_external(row) for row in due)):
        return []
    silent = TaskRun.objects.using(member.using).filter(
        ACTIVE,
        scheduler=held.row,
        outcome=Outcome.RUNNING,
        reservation__isnull=False,
        reserved_until__lte=held.database_now,
    )
    found = list(database.lockable(member.using, silent.order_by("pk")))
    return interrupt(held, member, found, now)


def _bury(held: Locked, member: Member, silent: list[UUID]) -> None:
    """Mark silent instances as stopped; one that lives after all beats again."""
    if silent:
        open_runs = TaskRun.objects.filter(ACTIVE, scheduler=held.row, instance=OuterRef("pk"))
        buried = SchedulerInstance.objects.using(member.using).filter(~Exists(open_runs))
        buried.filter(pk__in=silent).update(stopped_at=held.database_now)


def _runs_of_the_dead(held: Locked, member: Member, silent: list[UUID]) -> list[TaskRun]:
    living = SchedulerInstance.objects.filter(
        id=OuterRef("instance"), stopped_at=None, heartbeat_at__gt=LONG_AGO
    )
    running = _runs_in_processes(held, member)
    dead = running.filter(Q(instance=None) | Q(instance__in=silent) | ~Exists(living))
    dead = dead.exclude(instance=member.instance)
    return list(database.lockable(member.using, dead.order_by("pk")))


def _runs_in_processes(held: Locked, member: Member) -> QuerySet[TaskRun]:
    # What an external worker has reserved is in no process of ours.
    ours = ACTIVE & Q(scheduler=held.row, reservation=None)
    return TaskRun.objects.using(member.using).filter(ours, ~Q(outcome=Outcome.WAITING))


def free_of_lost_runs(held: Locked, member: Member, now: datetime) -> None:
    """Let tasks go on whose run in progress has no row any more.

    Args:
        held: the locked row of the deployment.
        member: who initialises; its own runs may still end.
        now: the instant of the initialisation.
    """
    tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row)
    tasks.filter(is_lost()).update(running_run=None, wake_at=now)


def is_lost() -> Q:
    """Ask for the tasks whose run in progress has no row any more."""
    open_run = TaskRun.objects.filter(id=OuterRef("running_run"), running_slot__isnull=False)
    return Q(~Exists(open_run), running_run__isnull=False)
