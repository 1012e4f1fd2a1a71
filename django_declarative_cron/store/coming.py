"""What history and people's acts say about names that come, or come again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from ..core import events
from ..core.declaration import Declaration
from ..exceptions import ScheduleTaskError
from ..models import Outcome, TaskOverride, TaskRun
from .active import ACTIVE
from .database import chunks
from .guard import Locked, Member


@contextmanager
def scheduling(declaration: Declaration) -> Iterator[None]:
    """Name the task that cannot be scheduled (001 ScheduleTaskError).

    Args:
        declaration: of the task that the block is about.
    """
    try:
        yield
    except Exception as error:
        raise ScheduleTaskError(declaration.name, declaration.cron, error) from error


@contextmanager
def scheduling_each(declarations: Iterable[Declaration]) -> Iterator[Iterator[Declaration]]:
    """Do the same for whichever of many tasks the block is at, without a block for each.

    Args:
        declarations: of the tasks, given out one after the other.
    """
    current: Declaration | None = None

    def each() -> Iterator[Declaration]:
        nonlocal current
        for declaration in declarations:
            current = declaration
            yield declaration

    try:
        yield each()
    except Exception as error:
        if current is None:
            raise
        raise ScheduleTaskError(current.name, current.cron, error) from error


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of names.

    Args:
        running: the run in progress of a name.
        pauses: the pause in force of a name.
        owed: the occurrence in the present minute of a name that has one.
        served: names that have succeeded in the present minute already.
    """

    running: dict[str, int]
    pauses: dict[str, TaskOverride]
    owed: dict[str, datetime]
    served: set[str]

    @classmethod
    def of(
        cls, held: Locked, member: Member, declarations: Sequence[Declaration], now: datetime
    ) -> Known:
        """Ask history and acts.

        Args:
            held: the locked row of the deployment.
            member: who reconciles.
            declarations: of the names.
            now: the instant of the reconciliation.
        """
        owed: dict[str, datetime] = {}
        with scheduling_each(declarations) as each:
            for declaration in each:
                occurrence = declaration.schedule.in_minute_of(now)
                if occurrence is not None:
                    owed[declaration.name] = occurrence
        if held.is_new:
            # It has no history, and nobody has acted.
            return cls({}, {}, owed, set())
        runs = TaskRun.objects.using(member.using).filter(scheduler=held.row)
        active = runs.filter(ACTIVE).exclude(outcome=Outcome.WAITING, waits_in=None)
        running = active.order_by("pk").values_list("task_name", "pk")
        served: set[str] = set()
        for chunk in chunks(owed):
            since = min(owed.values())
            done = runs.filter(task_name__in=chunk, outcome=Outcome.SUCCEEDED).filter(
                Q(scheduled_for__gte=since) | Q(started_at__gte=since)
            )
            served.update(done.values_list("task_name", flat=True))
        return cls(dict(running), open_pauses(held, member, now), owed, served)

    def added(self, declaration: Declaration, now: datetime) -> events.TaskAdded:
        """Tell that a name comes.

        Args:
            declaration: of the name.
            now: the instant of the reconciliation.
        """
        pause = self.pauses.get(declaration.name)
        return events.TaskAdded(
            at=now,
            task_name=declaration.name,
            cron_expression=declaration.cron,
            retry_delay_ms=declaration.retry_delay_ms,
            boot_at=self.boot_of(declaration.name),
            paused_since=now if pause is not None or not declaration.enabled else None,
            paused_until=pause.until if pause is not None and declaration.enabled else None,
        )

    def boot_of(self, name: str) -> datetime | None:
        """Give the occurrence a name owes at once (001 First Startup, semantics 9).

        Args:
            name: of a task.
        """
        return None if name in self.served or name in self.running else self.owed.get(name)


def open_pauses(held: Locked, member: Member, now: datetime) -> dict[str, TaskOverride]:
    """Give people's pauses that are in force, by name.

    Args:
        held: the locked row of the deployment.
        member: who asks.
        now: the present instant.
    """
    acts = TaskOverride.objects.using(member.using).filter(
        Q(until=None) | Q(until__gt=now),
        scheduler=held.row,
        kind=TaskOverride.Kind.PAUSE,
        ended_at=None,
    )
    return {act.task_name: act for act in acts.order_by("id")}
