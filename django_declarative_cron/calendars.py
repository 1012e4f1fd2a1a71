"""Calendars that exclude days: a function of the project, or a file in the iCalendar format.

The scheduler calls the function inside its transaction, once for each day and process, so it must
be fast. Files are expanded by days only, and read again when they change.

A calendar that does not answer excludes nothing in previews. A task whose occurrence is due is
set aside with the reason until the calendar answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.db import connections, transaction
from django.utils.module_loading import import_string

from .core.schedule import Exclusion
from .exceptions import CalendarError, words_of

Source = str | Callable[[date], bool]

LARGEST_FILE = 1_000_000
"""Bytes of a file in the iCalendar format."""

_DAY = timedelta(days=1)
_YEARS_KEPT = 64
_DAYS_KEPT = 10_000
_WITHIN_A_DAY = re.compile(
    r"^(?:RRULE|EXRULE)[^\n]*?[:;]"
    r"(FREQ=(?:HOURLY|MINUTELY|SECONDLY)|BY(?:HOUR|MINUTE|SECOND)=[0-9]+,[0-9,]*)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Calendars:
    """The calendars of a project.

    Args:
        sources: by name a function, the dotted path of one, or a file.
    """

    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def names(self) -> Sequence[str]:
        """Return their names."""
        return tuple(self.sources)

    def exclusion(self, names: Sequence[str]) -> Exclusion:
        """Return the union of some calendars; an unknown name raises an error when it is used."""
        return Asked(tuple((name, self.sources.get(name)) for name in names))


@dataclass(frozen=True, slots=True)
class Asked:
    """Some calendars together.

    Args:
        sources: by name, ``None`` for a calendar that is not there.
    """

    sources: tuple[tuple[str, Source | None], ...]

    def calendar_of(self, day: date) -> str:
        """Return the name of the first calendar that excludes a day, or an empty text.

        Raises:
            CalendarError: a calendar does not answer.
        """
        return next((name for name, source in self.sources if _excludes(name, source, day)), "")


def _excludes(name: str, source: Source | None, day: date) -> bool:
    if source is None:
        raise CalendarError(name, "is not in DECLARATIVE_CRON['CALENDARS']")
    try:
        answer = _answer_of(source, day)
    except (CalendarError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # ``SystemExit`` or a cancellation would end all other tasks too.
        reason = f"gives no answer for {day}: {type(error).__name__}: {words_of(error)}"
        raise CalendarError(name, reason) from error
    if not isinstance(answer, bool):
        raise CalendarError(name, f"says {type(answer).__name__}, not True or False, of {day}")
    return answer


def _answer_of(source: Source, day: date) -> Any:
    if is_file(source):
        return day in _days_in(Path(str(source)), day.year)
    return _kept(source, day)


@lru_cache(maxsize=_DAYS_KEPT)
def _kept(source: Source, day: date) -> Any:
    """Call a function once for each day; exceptions are not cached."""
    function = import_string(source) if isinstance(source, str) else source
    with ExitStack() as stack:
        for connection in connections.all(initialized_only=True):
            if connection.in_atomic_block:
                # A failing query of the function must not break the surrounding transaction.
                stack.enter_context(transaction.atomic(connection.alias))
        return function(day)


def is_file(source: Source) -> bool:
    """Return whether a calendar is the path of a file in the iCalendar format."""
    return isinstance(source, str) and source.endswith(".ics")


def flaw_of_file(path: Path) -> str | None:
    """Return why a file can never be a calendar of days, or ``None``.

    Raises:
        OSError: the file cannot be read.
    """
    size = path.stat().st_size
    if size > LARGEST_FILE:
        return f"has {size} bytes; a calendar has at most {LARGEST_FILE}"
    found = _WITHIN_A_DAY.search(_unfolded(path))
    if found is None:
        return None
    return f"has an event that repeats within a day ({found[1]}); only whole days are excluded"


def _unfolded(path: Path) -> str:
    """Return the text of a file with the lines that the format breaks put together."""
    return re.sub(r"\r?\n[ \t]", "", path.read_text("utf-8", errors="replace"))


def _days_in(path: Path, year: int) -> frozenset[date]:
    state = path.stat()
    return _days_of(path, state.st_mtime_ns, state.st_size, year)


@lru_cache(maxsize=_YEARS_KEPT)
def _days_of(path: Path, mtime: int, size: int, year: int) -> frozenset[date]:
    """Return the days of a year with events; time and size identify the version of the file."""
    if (flaw := flaw_of_file(path)) is not None:
        raise ValueError(flaw)
    import icalendar
    import recurring_ical_events

    calendar = icalendar.Calendar.from_ical(path.read_bytes())
    first, last = date(year, 1, 1), date(year, 12, 31)
    events = recurring_ical_events.of(calendar).between(first - _DAY, last + _DAY)
    return frozenset(day for event in events for day in _days(event, first, last))


def _days(event: Any, first: date, final: date) -> Iterator[date]:
    """Yield the days between two that an event touches, as its own clocks show them."""
    if event.get("STATUS") == "CANCELLED":
        return
    starts, ends = event.start, event.end
    last = _date(ends)
    # The end of an event is exclusive.
    if last > _date(starts) and (not hasattr(ends, "hour") or not (ends.hour or ends.minute)):
        last -= _DAY
    day = max(_date(starts), first)
    while day <= min(last, final):
        yield day
        day += _DAY


def _date(moment: Any) -> date:
    found: date = moment.date() if hasattr(moment, "hour") else moment
    return found
