"""The keys of a dict entry that say how its task is operated."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from ..exceptions import echoed
from .durations import read_duration
from .nearest import listed, nearest
from .operating import Operating
from .plain import in_short, seconds_of
from .problem import Check
from .reading import Item
from .spread import LONGEST_SPREAD, SECOND

LONGEST_CATCH_UP: Final = timedelta(days=36500)
_MOST_FAILURES: Final = 10_000
_DURATION: Final = 'Write timedelta(minutes=30), a number of seconds, or "PT30M".'


def read_operating(item: Item, typed: Mapping[str, Any]) -> Operating:
    """Understand the keys ``spread``, ``catch_up``, ``exclude`` and ``pause_after_failures``.

    Args:
        item: reports what is refused.
        typed: the keys of the entry whose values have the right type.
    """
    catch_up = typed.get("catch_up")
    return Operating(
        spread=_duration(item, "spread", typed.get("spread", 0), SECOND, LONGEST_SPREAD),
        catch_up=None
        if catch_up is None
        else _duration(item, "catch_up", catch_up, timedelta(0), LONGEST_CATCH_UP),
        exclude=_calendars(item, typed.get("exclude", ())),
        pause_after_failures=_failures(item, typed.get("pause_after_failures")),
    )


def _duration(item: Item, key: str, given: Any, least: timedelta, most: timedelta) -> timedelta:
    found, flaw = _timedelta(given)
    if found is not None and found and not least <= found <= most:
        flaw = f"must be at least {_words(least)} and at most {_words(most)}, found {found}"
    if flaw:
        item.refuse_field(Check.KEY_VALUE, key, given, flaw, _DURATION)
    return timedelta(0) if found is None else found


def _timedelta(given: Any) -> tuple[timedelta | None, str]:
    if isinstance(given, timedelta):
        return given, ""
    try:
        if isinstance(given, str):
            return read_duration(given), ""
        seconds = seconds_of(given)
        if seconds is not None:
            return timedelta(seconds=seconds), ""
    except ValueError as error:
        return None, str(error)
    except OverflowError:
        return (timedelta.max if given > 0 else timedelta.min), ""
    return None, f"must be a timedelta or a number of seconds, not {in_short(given)}"


def _words(length: timedelta) -> str:
    return f"{length.days} days" if length.days else f"{length.total_seconds():g} s"


def _calendars(item: Item, given: Any) -> tuple[str, ...]:
    names, known = (given,) if isinstance(given, str) else tuple(given), item.reader.calendars.names
    hint = f"Known calendars: {listed(known)}." if known else _NO_CALENDARS
    for name in names:
        if not isinstance(name, str):
            flaw = f"must be names of calendars, found {in_short(name)}"
            item.refuse_field(Check.KEY_VALUE, "exclude", given, flaw, hint)
        elif name not in known:
            near = nearest(name, known)
            tail = f"; did you mean `{near}`?" if near else ""
            flaw = f"{echoed(name)!r} is no calendar{tail}"
            item.refuse_field(Check.CALENDAR, "exclude", given, flaw, hint)
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


_NO_CALENDARS: Final = (
    'Name it in DECLARATIVE_CRON: {"CALENDARS": {"holidays": "app.calendars.is_holiday"}}.'
)


def _failures(item: Item, given: Any) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not 1 <= given <= _MOST_FAILURES:
        flaw = f"must be a whole number from 1 to {_MOST_FAILURES}, found {in_short(given)}"
        item.refuse_field(Check.KEY_VALUE, "pause_after_failures", given, flaw, "Write 5.")
        return None
    return int(given)
