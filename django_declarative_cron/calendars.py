"""Calendars that exclude days: a function of the project, or a file in the iCalendar format.

They are asked anew each time, for one day at a time, so that what changes counts at once. A
query that a function makes is kept apart from the transaction around it (``apart``): one that
the database refuses spoils that answer and nothing else, and one that never answers holds
nobody for ever. Files are read again when they change.

A calendar that gives no answer excludes nothing where times are only shown; a task whose
occurrence is due is set aside with the reason, and neither runs nor is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.utils.module_loading import import_string

from .apart import Call, HungError
from .core.exclusion import Exclusion
from .exceptions import CalendarError, words_of

Source = str | Callable[[date], bool]

PATIENCE = 15.0
"""Seconds after which a calendar that has not answered is not waited for any more."""

_DAY = timedelta(days=1)
_YEARS_KEPT = 64


@dataclass(frozen=True, slots=True)
class Calendars:
    """The calendars of a project.

    Args:
        sources: what answers for each name: a function, the dotted path of one, or a file.
    """

    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def names(self) -> Sequence[str]:
        """Give their names."""
        return tuple(self.sources)

    def exclusion(self, names: Sequence[str]) -> Exclusion:
        """Give what some of them exclude together.

        Args:
            names: of calendars; an unknown one gives no answer when it is asked.
        """
        return Asked(tuple((name, self.sources.get(name)) for name in names))


@dataclass(frozen=True, slots=True)
class Asked:
    """Some calendars together.

    Args:
        sources: by name, ``None`` for a calendar that is not there.
    """

    sources: tuple[tuple[str, Source | None], ...]

    def calendar_of(self, day: date) -> str:
        """Give the name of the first calendar that excludes a day, empty where none does.

        Args:
            day: as the clocks of the task's zone show it.

        Raises:
            CalendarError: a calendar gives no answer.
        """
        return next((name for name, source in self.sources if _excludes(name, source, day)), "")


def _excludes(name: str, source: Source | None, day: date) -> bool:
    if source is None:
        raise CalendarError(name, "is not in DECLARATIVE_CRON['CALENDARS']")
    try:
        answer = _answer_of(name, source, day)
    except (CalendarError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # One that leaves its program, or is cancelled, would take all other tasks with it.
        reason = f"gives no answer for {day}: {type(error).__name__}: {words_of(error)}"
        raise CalendarError(name, reason) from error
    if not isinstance(answer, bool):
        raise CalendarError(name, f"says {type(answer).__name__}, not True or False, of {day}")
    return answer


def _function_of(source: Source) -> Callable[[date], bool]:
    if not isinstance(source, str):
        return source
    found: Callable[[date], bool]
    found = _File(Path(source)).has if source.endswith(".ics") else import_string(source)
    return found


def _answer_of(name: str, source: Source, day: date) -> Any:
    """Ask in a thread apart; while one hangs, no other waits for the same calendar."""
    key = (name, id(source))
    hangs = _hanging.get(key)
    if hangs is not None and not hangs.call.has_ended:
        raise CalendarError(name, f"has not answered yet for {hangs.day}, and is not asked anew")
    _hanging.pop(key, None)
    call = Call(lambda: _function_of(source)(day))
    try:
        return call.wait(PATIENCE)
    except HungError:
        _hanging[key] = _Hanging(call, day, source)
        reason = f"has not answered for {day} within {PATIENCE:g} s"
        raise CalendarError(name, reason) from None


@dataclass(frozen=True, slots=True)
class _Hanging:
    """What a calendar was asked and has not answered.

    Args:
        call: goes on.
        day: which it was asked of.
        source: kept, so that nothing else gets its identity.
    """

    call: Call
    day: date
    source: Source


_hanging: dict[tuple[str, int], _Hanging] = {}


class _File:
    """A file in the iCalendar format: each day on which it has an event is excluded."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def has(self, day: date) -> bool:
        """Tell whether the file has an event on a day.

        Args:
            day: in the time that the file writes its events in.
        """
        state = self._path.stat()
        return day in _days_of(self._path, state.st_mtime_ns, state.st_size, day.year)


@lru_cache(maxsize=_YEARS_KEPT)
def _days_of(path: Path, mtime: int, size: int, year: int) -> frozenset[date]:
    """Give the days of a year with events; the file is told apart by its time and size."""
    import icalendar
    import recurring_ical_events

    calendar = icalendar.Calendar.from_ical(path.read_bytes())
    events = recurring_ical_events.of(calendar).between(
        date(year, 1, 1) - _DAY, date(year, 12, 31) + _DAY
    )
    return frozenset(day for event in events for day in _days(event) if day.year == year)


def _days(event: Any) -> Iterator[date]:
    """Yield the days that an event touches, as its own clocks show them."""
    if event.get("STATUS") == "CANCELLED":
        return
    starts, ends = event.start, event.end
    last = _date(ends)
    # An end is the first moment that is over.
    if last > _date(starts) and (not hasattr(ends, "hour") or not (ends.hour or ends.minute)):
        last -= _DAY
    day = _date(starts)
    while day <= last:
        yield day
        day += _DAY


def _date(moment: Any) -> date:
    found: date = moment.date() if hasattr(moment, "hour") else moment
    return found
