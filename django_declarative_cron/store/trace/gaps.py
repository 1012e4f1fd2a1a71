"""Runs in flight: whose they are, and which end of theirs the theory can be told; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeGuard
from uuid import UUID

from django.db.models import Q

from ...exceptions import DeclarativeCronError
from ...models import Origin, RegistrationSet, ScheduledTask, SchedulerState, TaskRun
from .. import rows
from .values import Act, Entry, Presence, Ran, Record, Registered, Span


class Ending(NamedTuple):
    """How a run ended.

    Args:
        at: when, ``None`` where it goes on, or ends with the crash of all instances.
        event: its name in the alphabet.
        values: what its record says besides.
    """

    at: datetime | None
    event: str
    values: Record


class Busy(NamedTuple):
    """A run in flight.

    Args:
        run: id of its row.
        until: its end, or that of the history.
        is_told: whether the judge knows of it.
        is_handed: whether a worker calls it.
    """

    run: int
    until: datetime
    is_told: bool
    is_handed: bool


class Flights(dict[str, Busy]):
    """What is in flight, by the name of the task.

    Args:
        workers: instances that never schedule: they call what was handed to them.
    """

    def __init__(self, workers: Collection[UUID]) -> None:
        super().__init__()
        self._workers = workers

    def handed(self, run: Ran) -> Record:
        """Return what records of a run say of the worker that took it over: of none, nothing."""
        return {"handed": True} if run.instance in self._workers else {}

    def end(self, run: Ran) -> None:
        """Take note of the end of a run, unless another one is in flight."""
        busy = self.get(run.task)
        if busy is not None and busy.run == run.id:
            del self[run.task]

    def left(self) -> None:
        """Take note of the end of the last scheduler: what workers call goes on."""
        for name in [name for name, busy in self.items() if not busy.is_handed]:
            del self[name]

    def untold_until(self) -> datetime | None:
        """Return how long a stop waits for runs that the judge does not know of."""
        own = (busy for busy in self.values() if not busy.is_handed)
        return max((busy.until for busy in own if not busy.is_told), default=None)


def ending(run: Ran, presence: Presence | None, until: datetime, handed: Record) -> Ending:
    """Return how a run ended, as the theory understands it."""
    at, values = run.finished_at, {**handed}
    is_lost = at is None and presence is not None and _is_lost(run, presence)
    if is_lost or (run.outcome == "interrupted" and at is not None):
        # Found by a survivor, it is a failure whose retry is due when it is found. With the
        # last instance gone, the crash says it all.
        found_at = at or until
        values["retry_at"] = found_at
        over = presence.ended if presence is not None else None
        if presence is not None and over is not None and found_at >= over and not handed:
            at = over if presence.is_orderly else None
    return Ending(at, "REs" if run.outcome == "succeeded" else "REf", values)


def _is_lost(run: Ran, presence: Presence) -> bool:
    """Return whether nobody calls a run any more, found interrupted or not yet."""
    # What no worker had taken up is let go of by the stop that finds it.
    is_let_go = run.instance is None and presence.is_orderly
    return is_let_go or presence.has_lost(run.instance)


COLUMNS = (
    *("pk", "task_name", "started_at", "finished_at", "outcome", "reason"),
    *("scheduled_for", "instance"),
)
"""What ``ran`` is given of a run."""


def ran(rows: Iterable[tuple[Any, ...]], earliest: datetime, latest: datetime) -> Iterator[Ran]:
    """Return what ran; what has no place in time is dated by its occurrence and its neighbours."""
    before = earliest
    for *read, scheduled_for, instance in rows:
        run = Ran._make([*read, instance, False])
        if _is_whole(run, latest):
            before = run.started_at
            yield run
            continue
        known = (run.started_at, run.finished_at, scheduled_for)
        at = max([before, *(each for each in known if each is not None and each <= latest)])
        yield run._replace(started_at=at, finished_at=at, is_torn=True)


def _is_whole(run: Ran, latest: datetime) -> bool:
    has_ended = run.finished_at is not None or run.outcome == TaskRun.Outcome.RUNNING
    return has_ended and run.started_at <= latest


def registered(rows: Iterable[tuple[RegistrationSet, list[Any]]]) -> Iterator[Registered]:
    """Return the registration sets, each with the entries that can be read."""
    for row, tasks in rows:
        entries = {entry.name: entry for entry in map(Entry, filter(_has_name, tasks))}
        is_torn = len(entries) < len(tasks)
        yield Registered(row.registered_at, row.after_run, row.instance_id, entries, is_torn)


def _has_name(data: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(data, Mapping) and isinstance(data.get("name"), str)


def lapses(value: object) -> tuple[Span, ...]:
    """Return the times that an instance did not live through, none where they cannot be read."""
    try:
        return tuple(map(_span, value))  # type: ignore[call-overload]
    except (ValueError, TypeError):
        return ()


def _span(lapse: Iterable[str]) -> Span:
    since, until = map(datetime.fromisoformat, lapse)
    return since, until


REASONS = ("excluded", "skip_next", "too_late")

_PAGE = 2000

_BEFORE = timedelta(microseconds=2)
"""A task that comes back for an occurrence does so a microsecond before it."""


def acts(
    using: str, state: SchedulerState, begins: datetime | None, until: datetime
) -> Iterator[Act]:
    """Yield one act for each row, and for each day that has none yet."""
    yield from _told(using, state, begins)
    yield from _untold(using, state, until)


def _told(using: str, state: SchedulerState, begins: datetime | None) -> Iterator[Act]:
    runs = TaskRun.objects.using(using).filter(
        scheduler=state, reason__in=REASONS, origin=Origin.SETTINGS
    )
    if begins is not None:
        runs = runs.filter(Q(finished_at__gte=begins) | Q(scheduled_for__gte=begins))
    columns = ("pk", "task_name", "scheduled_from", "scheduled_for", "reason", "finished_at")
    newest = 0
    while page := runs.filter(pk__gt=newest).order_by("pk").values_list(*columns)[:_PAGE]:
        for newest, name, first, last, reason, told in page:  # noqa: B007 - where the next begins
            ends = max(last, told) if reason == "too_late" and told is not None else last
            yield _act(name, first or last, ends)


def _untold(using: str, state: SchedulerState, until: datetime) -> Iterator[Act]:
    """Tell of days that are not over, of which no row tells yet."""
    tasks: Any = ScheduledTask.objects.using(using).filter(scheduler=state, origin=Origin.SETTINGS)
    for task in tasks.filter(declaration__has_key="exclude_calendars"):
        try:
            schedule, mark = rows.terms_of(task).schedule, rows.state_of(task).mark
            for day in schedule.excluded_between(mark, until):
                yield _act(task.name, day.first, day.last)
        except DeclarativeCronError:
            continue


def _act(name: str, first: datetime, last: datetime) -> Act:
    return Act(first - _BEFORE, name, "left_out", last)


Cause = Literal["people", "clock", "rows", "start"]

MARGIN = timedelta(minutes=1)
"""How long after an act a task stays away: the clocks of two machines may differ."""


@dataclass(slots=True)
class Absence:
    """Why and how long a task is away.

    Args:
        cause: ``people`` by somebody's act, ``clock`` as it was set back, ``rows`` where rows
            were lost or damaged, ``start`` where the history begins.
        after: it comes back after this instant, ``None`` for not before something happens.
        expected: when it is planned to come back.
    """

    cause: Cause
    after: datetime | None
    expected: datetime | None = None

    def ready_after(self, now: datetime) -> datetime | None:
        """Return the instant after which the next occurrence may bring the task back."""
        return None if self.after is None else max(self.after + MARGIN, now)


class Absences:
    """All tasks that are away, or are to be kept away."""

    def __init__(self, begun: dict[str, datetime]) -> None:
        self._away = {name: Absence("start", after) for name, after in begun.items()}
        self._paused: dict[str, datetime | None] = {}
        self._disabled: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._away

    def __iter__(self) -> Iterator[str]:
        return iter(self._away)

    def of(self, name: str) -> Absence | None:
        """Return the absence of a task, ``None`` for one that is here."""
        return self._away.get(name)

    def leave(self, name: str, cause: Cause, after: datetime) -> bool:
        """Let a task be away until after an instant at least.

        Returns:
            whether it was here.
        """
        absence = self._away.get(name)
        if absence is None:
            self._away[name] = Absence(cause, self._end_of_pause(name, after))
            return True
        absence.after = self._end_of_pause(name, max(after, absence.after or after))
        absence.expected = None
        return False

    def come_back(self, name: str) -> None:
        """Let a task be here again."""
        del self._away[name]

    def pause(self, name: str, at: datetime, until: datetime | None) -> bool:
        """Follow somebody's pause; tell whether the task was here."""
        self._paused[name] = until
        return self.leave(name, "people", at)

    def resume(self, name: str, at: datetime) -> None:
        """Follow the end of a pause."""
        self._paused.pop(name, None)
        if name in self._away:
            self.leave(name, "people", at)

    def disable(self, name: str, at: datetime) -> None:
        """Follow ``enabled`` switched off, which is a pause."""
        self._disabled.add(name)
        self.leave(name, "people", at)

    def enable(self, names: Iterable[str], at: datetime) -> None:
        """Follow ``enabled`` switched on."""
        for name in self._disabled.intersection(names):
            self._disabled.remove(name)
            self.leave(name, "people", at)

    def _end_of_pause(self, name: str, after: datetime) -> datetime | None:
        if name in self._disabled:
            return None
        if name not in self._paused:
            return after
        until = self._paused[name]
        return None if until is None else max(until, after)
