"""How much is waiting in the outbox, for people and for monitors."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from django.db.models import Count, Max, Min, Q
from django.db.models.expressions import BaseExpression

from .. import conf
from ..models import OutboxEvent, SchedulerState


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a deployment has not delivered.

    Args:
        waiting: events that are still to be delivered.
        refused: those of them that were refused at least once.
        set_aside: events that were refused for too long.
        oldest: when the oldest of the waiting ones happened.
        now: the database's time.
        error: the newest refusal there is, in one line.
    """

    waiting: int
    refused: int
    set_aside: int
    oldest: datetime | None
    now: datetime
    error: str

    @property
    def age(self) -> timedelta | None:
        """Give for how long the oldest has been waiting."""
        return None if self.oldest is None else max(self.now - self.oldest, timedelta(0))


class Clock(Protocol):
    """What gives the expression of the database's time."""

    def database_time(self) -> BaseExpression:
        """Give the expression."""


def undelivered(using: str, deployment: str, clock: Clock) -> Backlog | None:
    """Count what is waiting, in two or three queries; in none without a sink.

    Args:
        using: database alias.
        deployment: its name.
        clock: gives the expression of the database's time.

    Returns:
        what was found, ``None`` where events are not posted, or no scheduler ever came.
    """
    if not conf.posts_events():
        return None
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    state = states.annotate(database_now=clock.database_time()).first()
    if state is None:
        return None
    rows = OutboxEvent.objects.using(using).filter(scheduler=state)
    waits = Q(set_aside_at=None)
    found = rows.aggregate(
        waiting=Count("id", filter=waits),
        refused=Count("id", filter=waits & Q(attempts__gt=0)),
        set_aside=Count("id", filter=~waits),
        oldest=Min("created_at", filter=waits),
        newest_refused=Max("id", filter=~Q(error="")),
    )
    newest = found.pop("newest_refused")
    error = "" if newest is None else rows.values_list("error", flat=True).get(pk=newest)
    return Backlog(**found, now=state.database_now, error=error)
