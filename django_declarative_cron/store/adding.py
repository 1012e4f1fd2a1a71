"""Rows of tasks that are declared for the first time, written many at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from ..core import events
from ..core.decide import Story, settle
from ..core.declaration import Declaration
from ..core.state import first_coming
from ..models import ScheduledTask
from . import bulk, rows
from .coming import Known, scheduling_each
from .database import chunks
from .guard import Locked, Member


def add(
    held: Locked, member: Member, declarations: Sequence[Declaration], now: datetime
) -> list[events.TaskEvent]:
    """Insert the rows of names that have none; return what happened, in causal order."""
    told: list[events.TaskEvent] = []
    if declarations:
        held.next_epoch(member.using)
    for chunk in chunks(declarations):
        new = list(_rows(held, member, chunk, now))
        bulk.insert(member.using, [row for row, _ in new])
        told += [event for _, event in new]
    return told


def _rows(
    held: Locked, member: Member, declarations: Sequence[Declaration], now: datetime
) -> Iterator[tuple[ScheduledTask, events.TaskAdded]]:
    known, epoch = Known.of(held, member, declarations, now), held.next_epoch(member.using)
    with scheduling_each(declarations) as each:
        for declaration in each:
            event, running = known.added(declaration, now), known.running.get(declaration.name)
            row = ScheduledTask(scheduler=held.row, epoch=epoch, created_at=now)
            rows.declare(row, declaration, held.row.identifier)
            state = first_coming(event).but(running=running is not None)
            policy = declaration.overlap_policy
            rows.take(row, settle(Story(state), declaration.schedule, now, policy))
            row.running_run = running
            yield row, event
