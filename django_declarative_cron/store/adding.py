"""Rows of tasks that come: written many at a time, and decided once for all that are alike."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from ..core import events
from ..core.decide import Story, settle
from ..core.declaration import Declaration
from ..core.state import first_coming
from ..models import ScheduledTask
from . import bulk, rows
from .coming import Known, scheduling_each
from .database import chunks
from .guard import Locked, Member
from .made import made

_ASKED_AT_ONCE: Final = 50_000
"""Of how many names history is asked at once; first it is thought of whether each is due."""

_TEXT: Final = ScheduledTask._meta.get_field("declaration").unread
"""Under what a row carries its declaration as text."""

_MOST_ALIKE: Final = 2048
"""How many rows are remembered that others may be like: some megabytes."""


def add(
    held: Locked, member: Member, declarations: Sequence[Declaration], now: datetime
) -> list[events.TaskEvent]:
    """Write new rows, a statement for some of them: no server waits for all to be thought of.

    Args:
        held: the locked row of the deployment.
        member: on whose behalf.
        declarations: of names that have no row.
        now: the instant.

    Returns:
        what happened, in causal order.
    """
    if not declarations:
        return []
    told: list[events.TaskEvent] = []
    newcomers = _Newcomers(held, member, now)
    for many in chunks(declarations, _ASKED_AT_ONCE):
        known = Known.of(held, member, many, now)
        for chunk in chunks(many):
            come = list(newcomers.come(chunk, known))
            bulk.insert(member.using, [row for row, _ in come])
            told += [event for _, event in come]
    return told


class _Newcomers:
    """Makes rows of tasks that come at one instant.

    Args:
        held: the locked row of the deployment.
        member: on whose behalf.
        now: the instant.
    """

    def __init__(self, held: Locked, member: Member, now: datetime) -> None:
        self._identifier, self._now = held.row.identifier, now
        epoch = held.next_epoch(member.using)
        self._make = bulk.maker(
            ScheduledTask, scheduler_id=held.row.pk, epoch=epoch, created_at=now
        )
        self._alike: dict[Hashable, dict[str, Any]] = {}
        self._endings: dict[Hashable, str] = {}

    def come(
        self, declarations: Sequence[Declaration], known: Known
    ) -> Iterator[tuple[ScheduledTask, events.TaskAdded]]:
        """Make the row of each task, and tell that it comes.

        Args:
            declarations: of the names.
            known: of them at least.
        """
        with scheduling_each(declarations) as each:
            for declaration in each:
                event = known.added(declaration, self._now)
                yield self._row(declaration, event, known.running.get(event.task_name)), event

    def _row(
        self, declaration: Declaration, event: events.TaskAdded, running: int | None
    ) -> ScheduledTask:
        owed = event.boot_at, event.paused_since, event.paused_until, running is not None
        # Terms that say the same are the same object; the declarations keep it alive.
        first = self._alike.get(key := (id(declaration.terms), *owed))
        if first is not None:
            own = {"name": declaration.name, _TEXT: self._text(declaration)}
            row = made(ScheduledTask, first | own)
        else:
            row = self._decided(declaration, event, running)
            if len(self._alike) < _MOST_ALIKE:
                # As it is now: what is written becomes another.
                self._alike[key] = dict(vars(row))
        row.running_run = running
        return row

    def _decided(
        self, declaration: Declaration, event: events.TaskAdded, running: int | None
    ) -> ScheduledTask:
        row = self._make()
        del vars(row)["declaration"]
        rows.declare_columns(row, declaration, self._identifier)
        vars(row)[_TEXT] = self._text(declaration)
        state = first_coming(event)
        if running is not None:
            state = state.but(running=True)
        policy = declaration.overlap_policy
        rows.take(row, settle(Story(state), declaration.schedule, self._now, policy))
        return row

    def _text(self, declaration: Declaration) -> str:
        """Spell a declaration as data; what tasks say beside name and expression, once."""
        terms = declaration.terms
        # Here too, what says the same is the same.
        key = id(terms.manner), id(terms.rules), terms.dialect
        ending = self._endings.get(key)
        if ending is None:
            data = terms.as_data()
            del data["cron"]
            ending = json.dumps(data)[1:]
            if len(self._endings) < _MOST_ALIKE:
                self._endings[key] = ending
        name, cron = json.dumps(declaration.name), json.dumps(terms.cron)
        return f'{{"name": {name}, "cron": {cron}, {ending}'
