"""The values of a trace: runs, registrations, presences, absences, runs in flight; pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from functools import cached_property
from itertools import count
from typing import Any, Literal, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from ..core.declarations.declaration import offset_of
from ..core.schedule import Schedule
from ..cron import parse
from ..exceptions import DeclarativeCronError

_MICROSECOND = timedelta(microseconds=1)


class Ran(NamedTuple):
    """A run that was started. All instants are aware UTC.

    Args:
        id: of its row; runs are told in this order.
        finished_at: its end, or when it was found interrupted.
        instance: where it ran, ``None`` where that row is gone.
        is_torn: whether its row was damaged, so that nothing can be said of its task.
    """

    id: int
    task: str
    started_at: datetime
    finished_at: datetime | None
    outcome: str
    reason: str
    instance: UUID | None
    is_torn: bool = False


class Act(NamedTuple):
    """An action on a task.

    Args:
        kind: as in the row; ``left_out`` where occurrences were never to run.
        until: end of a pause, ``None`` for one without; the last that was left out.
    """

    at: datetime
    task: str
    kind: str
    until: datetime | None


@dataclass(frozen=True)
class Entry:
    """One registration of a set, as it is stored."""

    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.data["name"])

    @property
    def is_enabled(self) -> bool:
        return bool(self.data.get("enabled", True))

    @property
    def is_fresh(self) -> bool:
        return bool(self.data.get("fresh", False))

    @cached_property
    def identity(self) -> tuple[Any, Any, Any]:
        """Return the values that decide on an override (001 Configuration Comparison)."""
        data = self.data
        return data.get("cron"), data.get("timezone"), data.get("retry_delay_us")

    @cached_property
    def record(self) -> dict[str, Any]:
        """Return the registration as records carry it."""
        told = {key: self.data[key] for key in _TOLD if key in self.data}
        delay = self.data.get("retry_delay_us", 0)
        by_policy = {"retry": "policy"} if delay is None else {}
        later = {"offset": self.offset} if self.offset else {}
        return told | {"retry_delay": _delay(delay)} | by_policy | later

    @cached_property
    def offset(self) -> timedelta:
        """Return by how much its occurrences are later than its expression says."""
        spread = self.data.get("spread", 0)
        try:
            return offset_of(self.name, timedelta(seconds=spread))
        except (TypeError, ValueError, OverflowError):
            return timedelta(0)

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the next occurrence, ``None`` where there is none or the row is damaged."""
        return None if self._schedule is None else self._schedule.next_after(instant)

    @cached_property
    def _schedule(self) -> Schedule | None:
        data = self.data
        try:
            expression = parse(data["cron"], data.get("dialect", "posix"))
            zone = ZoneInfo(data["timezone"])
        except (DeclarativeCronError, ValueError, LookupError, TypeError):
            return None
        if expression.every is not None:
            return None  # It counts from the registration of the task, which is not kept here.
        gap, fold = data.get("gap", "skip"), data.get("fold", "first")
        return Schedule(expression, zone, gap, fold, offset=self.offset)


def _delay(value: Any) -> Any:
    """Return a duration; other values stay as they are, for the axiom checker to reject."""
    try:
        return value * _MICROSECOND if isinstance(value, int) else value
    except OverflowError:
        return value


_TOLD = ("name", "cron", "timezone", "dialect", "gap", "fold", "overlap_policy")


class Registered(NamedTuple):
    """A set of registrations, from when it was made the active one.

    Args:
        after_run: id of the newest run before it.
        instance: that registered it, ``None`` if its row is gone.
        is_torn: whether its row was damaged, so that it may have had more of them.
    """

    at: datetime
    after_run: int
    instance: UUID | None
    entries: Mapping[str, Entry]
    is_torn: bool = False


Record = dict[str, Any]
Telling = Callable[[datetime], Iterable[Record]]


class Rank(IntEnum):
    END = 0
    PRESENCE = 1
    ACT = 2
    RETURN = 3


class Step(IntEnum):
    BEGAN = 0
    ASKED = 1
    ENDED = 2


class Item(NamedTuple):
    at: datetime
    rank: Rank
    presence: int
    step: Step
    order: int
    telling: Telling


class Agenda:
    def __init__(self) -> None:
        self._items: list[Item] = []
        self._order = count()

    def add(
        self,
        at: datetime,
        rank: Rank,
        telling: Telling,
        presence: int = -1,
        step: Step = Step.BEGAN,
    ) -> None:
        heapq.heappush(self._items, Item(at, rank, presence, step, next(self._order), telling))

    def up_to(self, at: datetime, presence: int) -> Iterator[Item]:
        """Yield the items before an event of a presence; more may be added meanwhile."""
        while self._items and _comes_before(self._items[0], at, presence):
            yield heapq.heappop(self._items)


def _comes_before(item: Item, at: datetime, presence: int) -> bool:
    if item.at != at:
        return item.at < at
    if item.rank is Rank.PRESENCE:
        return (item.presence, item.step) <= (presence, Step.BEGAN)
    return item.rank is Rank.END


Span = tuple[datetime, datetime]

NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Life:
    """One scheduler instance, from its initialisation to its end. All instants are aware UTC.

    Args:
        ended: when it stopped, or gave its last sign of life; ``None`` while it lives.
        is_orderly: it ended by a stop that was complete.
        asked: when it was asked to stop, if it was.
        lapses: where its clock leapt from and to.
    """

    instance: UUID
    began: datetime
    ended: datetime | None
    is_orderly: bool = False
    asked: datetime | None = None
    lapses: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Presence:
    """A time in which at least one instance lived.

    Args:
        number: from 0, in the order of time.
        ended: ``None`` where it goes on.
        is_orderly: it ended by a stop.
        asked: from when on every living instance had been asked to stop, ``None`` for never.
    """

    number: int
    began: datetime
    ended: datetime | None
    is_orderly: bool
    asked: datetime | None
    lives: tuple[Life, ...]

    def has_lost(self, instance: UUID | None) -> bool:
        """Return whether an instance died in it, found dead or not yet."""
        died = (life for life in self.lives if life.ended is not None and not life.is_orderly)
        return any(life.instance == instance for life in died)


def presences(lives: Iterable[Life]) -> list[Presence]:
    """Put lives that overlap together."""
    groups: list[list[Life]] = []
    until = None
    for life in sorted(lives, key=lambda each: each.began):
        if until is None or life.began >= until:
            groups.append([])
            until = life.began
        groups[-1].append(life)
        until = max(until, life.ended or NEVER)
    return [_presence(number, group) for number, group in enumerate(groups)]


def _presence(number: int, lives: list[Life]) -> Presence:
    last = max(lives, key=lambda each: (each.ended or NEVER, each.is_orderly))
    asked = max(each.asked or each.ended or NEVER for each in lives)
    over = last.ended or NEVER
    # A crash without a stop request ends all in the same instant.
    is_asked = asked < over or (last.is_orderly and asked == over)
    return Presence(
        *(number, lives[0].began, last.ended, last.is_orderly),
        *(asked if is_asked else None, tuple(lives)),
    )


def frozen(presence: Presence) -> list[Span]:
    """Return the times in which no living instance could start anything, oldest first.

    Its process did not live through them (004 Frozen), or it was asked to stop.
    """
    gaps: list[Span] = []
    until = presence.began
    for since, end in sorted(span for life in presence.lives for span in _at_work(life)):
        if since > until:
            gaps.append((until, since))
        until = max(until, end)
    # The last of them may have been asked to stop, or died, as it came to.
    over = presence.asked or presence.ended or NEVER
    return [*gaps, (until, over)] if until < over else gaps


def _at_work(life: Life) -> Iterator[Span]:
    since, end = life.began, life.asked or life.ended or NEVER
    for lapsed, resumed in sorted(lapse for lapse in life.lapses if lapse[0] < lapse[1]):
        if since < lapsed:
            yield since, min(lapsed, end)
        since = max(since, resumed)
    if since < end:
        yield since, end


def lived_twice(presence: Presence) -> list[Span]:
    """Return the times that clocks, set back, showed twice."""
    back = (lapse for life in presence.lives for lapse in life.lapses if lapse[1] < lapse[0])
    return sorted((until, since) for since, until in back)


class Busy(NamedTuple):
    """A run in flight.

    Args:
        until: its end, or that of the history.
        is_told: whether the judge knows of it.
        is_handed: whether a worker calls it.
    """

    run: int
    until: datetime
    is_told: bool
    is_handed: bool


class Flights(dict[str, Busy]):
    """Runs in flight, by the name of the task; workers call what is handed to them."""

    def __init__(self, workers: Collection[UUID]) -> None:
        super().__init__()
        self._workers = workers

    def handed(self, run: Ran) -> Record:
        """Return the records' values for the worker that took a run over, empty for none."""
        return {"handed": True} if run.instance in self._workers else {}

    def end(self, run: Ran) -> None:
        """Take note of the end of a run, unless another one is in flight."""
        busy = self.get(run.task)
        if busy is not None and busy.run == run.id:
            del self[run.task]

    def left(self) -> None:
        """Record the end of the last scheduler: runs on workers go on."""
        for name in [name for name, busy in self.items() if not busy.is_handed]:
            del self[name]

    def untold_until(self) -> datetime | None:
        """Return how long a stop waits for runs that the judge does not know of."""
        own = (busy for busy in self.values() if not busy.is_handed)
        return max((busy.until for busy in own if not busy.is_told), default=None)


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
        if self.after is None or self.after > NEVER - MARGIN:
            return None
        return max(self.after + MARGIN, now)


class Absences(dict[str, Absence]):
    """The tasks that are away, by name."""

    def __init__(self, begun: Mapping[str, datetime]) -> None:
        super().__init__({name: Absence("start", after) for name, after in begun.items()})
        self._paused: dict[str, datetime | None] = {}
        self._disabled: set[str] = set()

    def leave(self, name: str, cause: Cause, after: datetime) -> bool:
        """Mark a task as absent until after an instant at least.

        Returns:
            whether it was here.
        """
        absence = self.get(name)
        if absence is None:
            self[name] = Absence(cause, self._end_of_pause(name, after))
            return True
        absence.after = self._end_of_pause(name, max(after, absence.after or after))
        absence.expected = None
        return False

    def pause(self, name: str, at: datetime, until: datetime | None) -> bool:
        """Apply a pause; return whether the task was present."""
        self._paused[name] = until
        return self.leave(name, "people", at)

    def resume(self, name: str, at: datetime) -> None:
        self._paused.pop(name, None)
        if name in self:
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
