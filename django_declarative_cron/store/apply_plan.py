"""Write a plan: insert, update and delete rows of tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Max, Q, QuerySet

from ..core import events
from ..core.decide import Decision, end_pause, settle
from ..core.declarations.declaration import Declaration, offset_of
from ..core.missed import with_causes
from ..core.reconcile import Override, Plan
from ..core.state import Story, first_coming
from ..exceptions import ScheduleTaskError, TaskTryDeserializeError
from ..models import Outcome, ScheduledTask, TaskOverride
from ..signals import is_heard
from . import active_runs, bulk_update, database, outbox, rows
from .database import chunks
from .guard import LockedDeployment
from .rows import ACTIVE


def apply(held: LockedDeployment, todo: Plan, now: datetime) -> list[events.Event]:
    """Write a plan.

    Returns:
        the events, in causal order.
    """
    told: list[events.Event] = []
    if not todo.is_empty:
        told += outbox.tell(held, _remove(held, todo.orphaned, now), ())
        told += add(held, todo.new, now)
        told += _override(held, todo.overridden, now)
        told += _update(held, todo.updated, now)
    if is_heard(events.TaskPreserved):
        told += [events.TaskPreserved(at=now, task_name=d.name) for d in todo.preserved]
    return told


def _remove(held: LockedDeployment, names: Sequence[str], now: datetime) -> list[events.Event]:
    """Remove the rows of names that are no longer declared; runs and acts stay."""
    told: list[events.Event] = []
    for chunk in chunks(names):
        gone = held.tasks.filter(name__in=chunk)
        told += _withdraw(held, chunk, gone, now)
        fields = ("name", "last_attempt_at", "waiting")
        for name, last, waiting in gone.order_by("name").values_list(*fields):
            if waiting:
                told += active_runs.drop_waiting(held, name or "", now)
            told.append(
                events.TaskOrphaned(
                    at=now,
                    task_name=name or "",
                    last_execution_time=last,
                    scheduler_identifier=str(held.row.identifier),
                )
            )
        _keep_history_marks(held, gone)
        gone.delete()
    return told


def _keep_history_marks(held: LockedDeployment, gone: QuerySet[ScheduledTask]) -> None:
    """Store in the deployment's row where the histories of removed tasks began."""
    newest = gone.aggregate(newest=Max("history_from"))["newest"]
    if newest is not None and (held.row.history_from is None or held.row.history_from < newest):
        held.row.history_from = newest
        held.save("history_from")


def _withdraw(
    held: LockedDeployment,
    names: Collection[str],
    tasks: Iterable[ScheduledTask],
    now: datetime,
) -> list[events.Event]:
    """End the runs that no external worker has fetched: a task that comes again starts afresh."""
    withdrawn = active_runs.withdraw(held, names, now)
    return outbox.tell(held, active_runs.ends_of(withdrawn, now), tasks, withdrawn)


def _override(
    held: LockedDeployment, overrides: Sequence[Override], now: datetime
) -> list[events.Event]:
    if not overrides:
        return []
    known = Known.of(held, [o.declaration for o in overrides], now)
    told: list[events.Event] = []
    by_name = {override.declaration.name: override for override in overrides}
    for chunk in _rows_by_name(held, by_name):
        moved = [row for row in chunk if row.origin != by_name[row.name].declaration.origin]
        told += _take_over(held, moved, now)
        for row in chunk:
            declaration = by_name[row.name].declaration
            name = declaration.name
            pause, boot_at = known.pauses.get(name), known.boot_of(name)
            with scheduling(declaration):
                decision = overridden(held, row, declaration, now, pause, boot_at=boot_at)
            told += decision.events
            rows.take(row, decision)
        bulk_update.update(held.using, chunk, rows.DECLARED_FIELDS + rows.STATE_FIELDS)
        told = outbox.tell(held, told, chunk)
    return told


def _take_over(
    held: LockedDeployment, moved: Sequence[ScheduledTask], now: datetime
) -> list[events.Event]:
    """End runs that wait for an external worker if they block a task with a new owner."""
    told = _withdraw(held, [row.name or "" for row in moved], moved, now)
    ended = {event.run for event in told if isinstance(event, events.TaskRunCancelled)}
    for row in moved:
        if row.running_run in ended:
            row.running_run = None
    return told


def overridden(
    held: LockedDeployment,
    row: ScheduledTask,
    declaration: Declaration,
    now: datetime,
    pause: TaskOverride | None,
    *,
    boot_at: datetime | None = None,
) -> Decision:
    """Start a task's state afresh from its declaration (001 Overridden Task)."""
    changes = Override(declaration, rows.stored_of(row)).changes()
    event = events.TaskOverridden(
        at=now,
        task_name=declaration.name,
        change_type=",".join(changes) or "damage",
        old_state={field: pair[0] for field, pair in changes.items()},
        new_state={field: pair[1] for field, pair in changes.items()},
        boot_at=None if row.running_run is not None else boot_at,
    )
    enabled_before, damage = row.enabled, rows.damage_of(row, now)
    rows.declare(row, declaration, held.row.identifier)
    row.epoch = held.next_epoch()
    waited = active_runs.drop_waiting(held, row.name, now) if row.waiting else []
    story = Story(rows.state_of(row)).then(*damage, *waited, event)
    story = _switched(story, declaration, enabled_before, pause, now)
    return settle(story, declaration.schedule, now, declaration.overlap_policy)


def _update(
    held: LockedDeployment, declarations: Sequence[Declaration], now: datetime
) -> list[events.Event]:
    """Write changes other than the schedule; keep the state (001 Preserved Task)."""
    by_name = {declaration.name: declaration for declaration in declarations}
    told: list[events.Event] = []
    pauses = open_pauses(held, now) if declarations else {}
    for chunk in _rows_by_name(held, by_name):
        found: list[events.TaskEvent] = []
        for row in chunk:
            declaration = by_name[row.name]
            enabled_before, moved = row.enabled, events_of(row, declaration, now)
            state, is_broken = rows.state_of(row), bool(row.broken_reason)
            rows.declare(row, declaration, held.row.identifier)
            story = Story(rows.state_of(row)).then(*moved)
            pause = pauses.get(declaration.name)
            with scheduling(declaration):
                story = _switched(story, declaration, enabled_before, pause, now)
                policy = declaration.overlap_policy
                rows.take(row, settle(story, declaration.schedule, now, policy))
            found += with_causes(
                story.events,
                state,
                declaration.schedule,
                is_broken=is_broken,
                led_since=held.row.led_since,
            )
        fields = rows.DECLARED_FIELDS + rows.STATE_FIELDS
        told += active_runs.write_decided(held, chunk, found, now, fields=fields)[1]
    return told


def _switched(
    story: Story,
    declaration: Declaration,
    enabled_before: bool,
    pause: TaskOverride | None,
    now: datetime,
) -> Story:
    """Let ``enabled`` switched off and on behave as a pause.

    See docs/semantics.md, "Pauses and manual runs".
    """
    name = declaration.name
    if enabled_before and not declaration.enabled:
        return story.then(events.TaskPaused(at=now, task_name=name, author=declaration.origin))
    if declaration.enabled and not enabled_before:
        if pause is None:
            return end_pause(story, declaration.schedule, now, author=declaration.origin, note="")
        return story.then(
            events.TaskPaused(at=now, task_name=name, author=pause.author, until=pause.until)
        )
    return story


def _rows_by_name(held: LockedDeployment, names: Iterable[str]) -> Iterable[Any]:
    for chunk in chunks(names):
        yield list(held.tasks.filter(name__in=chunk))


def add(
    held: LockedDeployment, declarations: Sequence[Declaration], now: datetime
) -> list[events.TaskEvent]:
    """Insert the rows of names that have none; return the events, in causal order."""
    told: list[events.TaskEvent] = []
    if declarations:
        held.next_epoch()
    for chunk in chunks(declarations):
        new = list(_rows(held, chunk, now))
        database.insert(held.using, [row for row, _ in new])
        told += [event for _, event in new]
    return told


def _rows(
    held: LockedDeployment, declarations: Sequence[Declaration], now: datetime
) -> Iterator[tuple[ScheduledTask, events.TaskAdded]]:
    known, epoch = Known.of(held, declarations, now), held.next_epoch()
    for declaration in declarations:
        event, running = known.added(declaration, now), known.running.get(declaration.name)
        row = ScheduledTask(scheduler=held.row, epoch=epoch, created_at=now)
        rows.declare(row, declaration, held.row.identifier)
        state = replace(first_coming(event), running=running is not None)
        with scheduling(declaration):
            policy = declaration.overlap_policy
            rows.take(row, settle(Story(state), declaration.schedule, now, policy))
        row.running_run = running
        yield row, event


@contextmanager
def scheduling(declaration: Declaration) -> Iterator[None]:
    """Name the task that cannot be scheduled (001 ScheduleTaskError)."""
    try:
        yield
    except Exception as error:
        raise ScheduleTaskError(declaration.name, declaration.cron, error) from error


@dataclass(frozen=True, slots=True)
class Known:
    """The stored facts about task names.

    Args:
        owed: the occurrence in the present minute of a name that has one.
        served: names that have succeeded in the present minute already.
    """

    running: dict[str, int]
    pauses: dict[str, TaskOverride]
    owed: dict[str, datetime]
    served: set[str]

    @classmethod
    def of(
        cls, held: LockedDeployment, declarations: Sequence[Declaration], now: datetime
    ) -> Known:
        owed: dict[str, datetime] = {}
        for declaration in declarations:
            with scheduling(declaration):
                occurrence = declaration.schedule.in_minute_of(now)
            if occurrence is not None:
                owed[declaration.name] = occurrence
        if held.is_new:
            # It has no history and no operator actions.
            return cls({}, {}, owed, set())
        runs = held.runs
        active = runs.filter(ACTIVE).exclude(outcome=Outcome.WAITING, waits_in=None)
        running = active.order_by("pk").values_list("task_name", "pk")
        served: set[str] = set()
        for chunk in chunks(owed):
            since = min(owed.values())
            done = runs.filter(task_name__in=chunk, outcome=Outcome.SUCCEEDED).filter(
                Q(scheduled_for__gte=since) | Q(started_at__gte=since)
            )
            served.update(done.values_list("task_name", flat=True))
        return cls(dict(running), open_pauses(held, now), owed, served)

    def added(self, declaration: Declaration, now: datetime) -> events.TaskAdded:
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
        """Return the occurrence that a new task runs first (001 First Startup).

        See docs/semantics.md, "New tasks".
        """
        return None if name in self.served or name in self.running else self.owed.get(name)


def open_pauses(held: LockedDeployment, now: datetime) -> dict[str, TaskOverride]:
    """Return people's pauses that are in force, by name."""
    acts = TaskOverride.objects.using(held.using).filter(
        Q(until=None) | Q(until__gt=now),
        scheduler=held.row,
        kind=TaskOverride.Kind.PAUSE,
        ended_at=None,
    )
    return {act.task_name: act for act in acts.order_by("id")}


def events_of(
    row: ScheduledTask, declaration: Declaration, now: datetime
) -> list[events.TaskRescheduled]:
    """Return an event with the shift of a task's occurrences, if they move."""
    try:
        before = offset_of(row.name, rows.terms_of(row).operating.spread)
    except TaskTryDeserializeError:
        return []
    later = declaration.schedule.offset - before
    if not later:
        return []
    seconds = later.total_seconds()
    return [events.TaskRescheduled(at=now, task_name=row.name, seconds=seconds)]
