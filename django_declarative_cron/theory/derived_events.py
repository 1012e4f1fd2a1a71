"""Pulses that a trace does not state: dues from the schedules, retries from the failures.

Only pulses that can change a verdict are derived: the first due of a task after each of its
starts and after each registration of its schedule. So effort and memory grow with the number of
runs and not with the time between them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import count
from typing import Protocol, cast

from ..core.schedule import Schedule as CronSchedule
from ..cron import Fold, Gap, parse, validate_zone
from ..exceptions import DeclarativeCronError
from .events import Event, Registration
from .operators import BEFORE, Moment


class Schedule(Protocol):
    """The due times of a task. All instants are aware UTC."""

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first due strictly after an instant, or ``None``."""

    def latest_at_or_before(self, instant: datetime) -> datetime | None:
        """Return the newest due not later than an instant, or ``None``."""


Schedules = Callable[[Registration], Schedule | None]


def schedule_of(registration: Registration) -> Schedule | None:
    """Return the schedule of a registration, or ``None`` if it has none.

    Raises:
        DeclarativeCronError: its expression is invalid.
        ValueError: its zone or its dialect is invalid.
    """
    if registration.cron is None:
        return None
    named = (registration.timezone, registration.dialect, registration.gap, registration.fold)
    return _cron_schedule(registration.cron, *named, registration.offset)


@lru_cache(maxsize=4096)
def _cron_schedule(
    cron: str, timezone: str, dialect: str, gap: str, fold: str, offset: timedelta
) -> Schedule:
    expression, zone = parse(cron, dialect), validate_zone(timezone)
    return CronSchedule(expression, zone, cast(Gap, gap), cast(Fold, fold), offset=offset)


class PulseQueue:
    """The dues and retries to come.

    ``Due_x`` is the next one of each known task that has none behind it. ``RetryDue_x`` is the end
    of each failed run and its retry delay, superseded ones too.

    Args:
        schedules: finds the schedule of a task.
        stated: the trace states all dues itself.
    """

    def __init__(self, schedules: Schedules, stated: bool) -> None:
        self._schedules = schedules
        self._stated = stated
        self._known: dict[Registration, Schedule] = {}
        self._coming: dict[Registration, datetime] = {}
        self._queue: list[tuple[datetime, bool, int, Registration]] = []
        self._order = count()
        self._fired: set[Registration] = set()
        self._noted: dict[tuple[str, str | None], Moment] = {}

    def fault(self, registrations: Iterable[Registration]) -> str | None:
        """Describe the error in the schedules of a list (001 Registration Validation)."""
        for each in registrations:
            try:
                self._schedules(each)
            except (ValueError, DeclarativeCronError) as error:
                return f"{each.name}: {error}"
        return None

    def makes(self, registration: Registration | None) -> bool:
        return registration is not None and registration in self._known

    def register(
        self,
        registrations: Iterable[Registration],
        overridden: Iterable[Registration],
        came: Collection[Registration],
        at: datetime,
    ) -> None:
        for each in overridden:
            self._known.pop(each, None)
            self._coming.pop(each, None)
            self._fired.discard(each)
        for each in registrations:
            schedule = self._usable(each)
            if schedule is None:
                continue
            if each in came and isinstance(schedule, CronSchedule):
                self._known[each] = schedule.anchored(at)
            else:
                self._known.setdefault(each, schedule)

    def _usable(self, registration: Registration) -> Schedule | None:
        if self._stated or not registration.governed or self.fault([registration]):
            return None
        return self._schedules(registration)

    def look_ahead(self, registration: Registration, at: datetime) -> bool:
        """Plan the next due of a task; return whether it was due before and never will be again."""
        schedule = self._known.get(registration)
        if schedule is None or registration in self._coming:
            return False
        following = schedule.next_after(at)
        if following is None:
            return registration in self._fired
        self._coming[registration] = following
        self._push(following, registration, is_retry=False)
        return False

    def expect_retry(self, registration: Registration, at: datetime) -> None:
        self._push(at, registration, is_retry=True)

    def _push(self, at: datetime, registration: Registration, *, is_retry: bool) -> None:
        # The order of arrival keeps registrations from being compared.
        heapq.heappush(self._queue, (at, is_retry, next(self._order), registration))

    def next_at(self) -> datetime | None:
        while self._queue:
            at, is_retry, _, registration = self._queue[0]
            if is_retry or self._coming.get(registration) == at:
                return at
            heapq.heappop(self._queue)
        return None

    def take(self, at: datetime) -> list[Event]:
        taken = []
        while self.next_at() == at:
            _, is_retry, _, registration = heapq.heappop(self._queue)
            if is_retry:
                taken.append(Event("RetryDue", registration.name, registration, retry_at=at))
                continue
            del self._coming[registration]
            self._fired.add(registration)
            taken.append(Event("Due", registration.name, registration))
        return taken

    def note(self, event: Event, moment: Moment) -> None:
        assert event.task is not None
        self._noted[event.task, event.cron] = moment

    def newest(self, registration: Registration, at: datetime) -> Moment | None:
        """Return the newest due of a task, even one that was not known at that time."""
        schedule = self._known.get(registration)
        if schedule is not None:
            latest = schedule.latest_at_or_before(at)
            return None if latest is None else Moment(latest, BEFORE)
        keys = {(registration.name, None), (registration.name, registration.cron)}
        return max((self._noted[key] for key in keys if key in self._noted), default=None)
