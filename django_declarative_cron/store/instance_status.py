"""Which schedulers have checked in, for people and probes who look; nothing is written here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import OuterRef, Q, Subquery
from django.db.models.expressions import BaseExpression
from django.db.models.functions import Coalesce

from ..core.status import Status
from ..models import ScheduledTask, SchedulerInstance, SchedulerState
from .guard import LONG_AGO
from .task_status import status_query

MOST = 100
"""How many instances are looked at; a deployment has a handful."""

SCHEDULES = ~Q(digest="")
"""Keeps the processes that can lead: those of foreground runs and workers hold no set."""


@dataclass(frozen=True, slots=True)
class Attendance:
    """The schedulers of a deployment; processes that only run tasks are left out.

    Args:
        now: the database's time.
        leader: the instance that leads, if any.
        digest: of the active registration set.
        present: instances that have not stopped, the newest heartbeat first.
        last: the instance that was heard of last, ``None`` where none ever was.
        overdue: number of tasks that wait for a start for longer than they should.
    """

    now: datetime
    leader: UUID | None
    digest: str
    present: tuple[SchedulerInstance, ...]
    last: SchedulerInstance | None
    overdue: int

    def age(self, instance: SchedulerInstance) -> timedelta:
        """Return how long ago an instance spoke for itself, by the database's clock.

        One that its watchdog process vouches for lives, and cannot work.
        """
        return max(self.now - spoke_at(instance), timedelta(0))

    def heard(self, within: timedelta) -> Sequence[SchedulerInstance]:
        """Return the instances that were heard of lately."""
        return [each for each in self.present if self.age(each) <= within]


def is_attended(
    using: str, deployment: str, within: timedelta, database_time: BaseExpression
) -> bool:
    """Tell in one query whether a scheduler was heard of lately."""
    present = SchedulerInstance.objects.filter(SCHEDULES, scheduler=OuterRef("pk"), stopped_at=None)
    spoke = Coalesce("mute_since", "heartbeat_at")
    newest = present.annotate(spoke=spoke).order_by("-spoke").values("spoke")[:1]
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    seen = states.annotate(database_now=database_time, newest=Subquery(newest)).first()
    return (
        seen is not None and seen.newest is not None and seen.database_now - seen.newest <= within
    )


def spoke_at(instance: SchedulerInstance) -> datetime:
    """Return when an instance spoke for itself last."""
    spoke: datetime = instance.mute_since or instance.heartbeat_at
    return spoke


def gave_up(instance: SchedulerInstance) -> bool:
    """Return whether an instance ended with runs in flight, and said so."""
    return bool(instance.heartbeat_at <= LONG_AGO)


def attendance(
    using: str, deployment: str, now: datetime, database_time: BaseExpression
) -> Attendance | None:
    """Look who is there, in three or four queries whatever the number of rows.

    Returns:
        what was found, ``None`` where no scheduler ever came.
    """
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    state = states.annotate(database_now=database_time).first()
    if state is None:
        return None
    known = SchedulerInstance.objects.using(using).filter(SCHEDULES, scheduler=state)
    newest = known.defer("lapses").order_by("-heartbeat_at")
    present = tuple(newest.filter(stopped_at=None, heartbeat_at__gt=LONG_AGO)[:MOST])
    late = status_query(Status.OVERDUE, now)
    return Attendance(
        now=state.database_now,
        leader=state.leader_id,
        digest=state.digest,
        present=present,
        last=present[0] if present else newest.first(),
        overdue=ScheduledTask.objects.using(using).filter(late, scheduler=state).count(),
    )
