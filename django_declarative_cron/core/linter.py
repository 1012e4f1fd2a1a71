"""What is allowed, works, and is seldom meant: crowds, steps that do not fit, too quick a pace."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Final, NamedTuple

from .declaration import Declaration
from .problem import Check, Problem
from .reading import Declared
from .schedule import Schedule

CROWD: Final = 25
"""From how many tasks on one minute is worth a word."""

ENOUGH: Final = 5
"""From how many runs on an average says something."""

_LOOKED_AT: Final = 25
_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)
_SHOWN: Final = 3
_STEP: Final = re.compile(r"(?:\*|0-59|0-23)/([0-9]{1,2})")
_FIELDS: Final = (("second", 60), ("minute", 60), ("hour", 24))


class Pace(NamedTuple):
    """Hold how long the newest runs of a task took.

    Args:
        took: on average.
        runs: how many they are.
    """

    took: timedelta
    runs: int


def crowds(declared: Iterable[Declared], now: datetime) -> Iterator[Problem]:
    """Yield a warning for each minute that very many tasks begin in next.

    Tasks that run in every hour are left out: they share minutes by their nature.

    Args:
        declared: what was read.
        now: aware; the next occurrence of each task after it is looked at.
    """
    minutes: dict[datetime, list[str]] = defaultdict(list)
    known: dict[int, datetime | None] = {}
    for declaration in [each.declaration for each in declared]:
        if not declaration.enabled or not declaration.schedule.expression.hour_restricted:
            continue
        if (key := id(declaration.terms)) not in known:
            known[key] = declaration.schedule.anchored(now).next_after(now)
        upcoming = known[key]
        if upcoming is not None:
            minutes[upcoming.replace(second=0, microsecond=0)].append(declaration.name)
    for minute, names in sorted(minutes.items()):
        if len(names) >= CROWD:
            shown = ", ".join(map(repr, names[:_SHOWN]))
            yield Problem(
                check=Check.CROWD,
                place="SCHEDULED_TASKS",
                message=f"{len(names)} tasks begin in the minute {minute:%Y-%m-%d %H:%M} UTC: "
                f"{shown} and {len(names) - _SHOWN} more",
                hint="Spread them over the minutes around it, or give WORKERS enough of them.",
            )


def uneven_steps(declaration: Declaration) -> Iterator[str]:
    """Yield a message for each step that does not go into its hour or day without a rest.

    Args:
        declaration: of the task.
    """
    fields = declaration.cron.split()
    if len(fields) not in (5, 6):
        return
    names = _FIELDS if len(fields) == 6 else _FIELDS[1:]
    for (name, size), text in zip(names, fields, strict=False):
        step = _STEP.fullmatch(text)
        number = int(step[1]) if step else 0
        if 1 < number < size and size % number:
            yield (
                f"`{declaration.cron}`: `{text}` does not go into {size} {name}s, "
                f"so the last interval is {size % number} {name}s long"
            )


def sub_minute(declared: Iterable[Declared], now: datetime, kept: int) -> Iterator[Problem]:
    """Yield a warning for each task that runs more often than once a minute.

    Args:
        declared: what was read.
        now: aware; the occurrences after it are looked at.
        kept: how many runs of a task the history keeps.
    """
    for each in declared:
        schedule = each.declaration.schedule.anchored(now)
        closest = shortest_interval(schedule, now) if each.declaration.enabled else None
        if closest is None or closest >= _MINUTE:
            continue
        a_day = schedule.count_between(now, now + _DAY)
        yield Problem(
            check=Check.SUB_MINUTE,
            place=each.place,
            message=f"`{each.declaration.cron}` runs every {_seconds(closest)} at its closest, "
            f"{a_day:,} times within a day",
            hint=f"HISTORY_MAX_RUNS keeps {kept:,} of these runs. Let one run in a minute do the "
            "work of several, or silence this if it is meant.",
            index=each.position,
            task=each.declaration.name,
        )


def too_long(name: str, schedule: Schedule, pace: Pace, now: datetime) -> Iterator[Problem]:
    """Yield a warning for a task whose runs take longer than its occurrences are apart.

    Args:
        name: of the task.
        schedule: anchored.
        pace: how long its runs take.
        now: aware; the occurrences after it are looked at.
    """
    closest = shortest_interval(schedule, now) if pace.runs >= ENOUGH else None
    if closest is not None and pace.took > closest:
        yield Problem(
            check=Check.LONGER_THAN_INTERVAL,
            place=f"task {name!r}",
            message=f"its last {pace.runs:,} runs took {_seconds(pace.took)} on average, "
            f"and `{schedule.expression.text}` comes every {_seconds(closest)}",
            hint="Let it run less often or do less, or choose by `overlap_policy` what becomes "
            "of an occurrence during a run.",
            task=name,
        )


def shortest_interval(schedule: Schedule, now: datetime) -> timedelta | None:
    """Give the shortest time between two of the next occurrences, ``None`` where there is one.

    Args:
        schedule: anchored.
        now: aware.
    """
    coming = islice(schedule.upcoming(now), _LOOKED_AT)
    return min((later - sooner for sooner, later in pairwise(coming)), default=None)


def _seconds(length: timedelta) -> str:
    return (
        f"{length.total_seconds():,.10g} s"
        if length < _MINUTE
        else str(timedelta(seconds=round(length.total_seconds())))
    )
