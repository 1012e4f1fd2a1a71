"""Warnings and notes about declarations that are accepted and probably not meant."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from ..cron import Transition, fires_only_in_some_years, next_transitions, remarks_on
from ..formatting import format_duration
from .declarations.declaration import Declaration
from .declarations.item import Declared
from .declarations.problems import Check, Problem
from .schedule import Schedule

CROWD: Final = 25
"""A warning is reported for a minute in which at least this many tasks begin."""

ENOUGH: Final = 5
"""An average needs at least this many runs."""

_LOOKED_AT: Final = 25
_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)
_SHOWN: Final = 3
_STEP: Final = re.compile(r"(?:\*|0-59|0-23)/([0-9]{1,2})")
_FIELDS: Final = (("second", 60), ("minute", 60), ("hour", 24))


class Pace(NamedTuple):
    """The average duration of the newest runs of a task.

    Args:
        took: on average.
        runs: how many they are.
    """

    took: timedelta
    runs: int


def crowds(declared: Iterable[Declared], now: datetime) -> Iterator[Problem]:
    """Yield a warning for each minute in which many tasks begin next.

    Tasks that run every hour are ignored, because they always share minutes.
    """
    minutes: dict[datetime, list[str]] = defaultdict(list)
    for declaration in [each.declaration for each in declared]:
        if not declaration.enabled or not declaration.schedule.expression.hour_restricted:
            continue
        upcoming = declaration.schedule.anchored(now).next_after(now)
        if upcoming is not None:
            minutes[upcoming.replace(second=0, microsecond=0)].append(declaration.name)
    for minute, names in sorted(minutes.items()):
        if len(names) >= CROWD:
            yield Problem(
                check=Check.CROWD,
                place="SCHEDULED_TASKS",
                message=f"{len(names)} tasks begin in the minute {minute:%Y-%m-%d %H:%M} UTC: "
                f"{_some(names)}",
                hint="Spread them over the minutes around it, or give WORKERS enough of them.",
            )


def sub_minute(declared: Iterable[Declared], now: datetime, kept: int) -> Iterator[Problem]:
    """Yield a warning for each task that runs more often than once a minute."""
    for each in declared:
        schedule = each.declaration.schedule.anchored(now)
        closest = shortest_interval(schedule, now) if each.declaration.enabled else None
        if closest is None or closest >= _MINUTE:
            continue
        a_day = schedule.count_between(now, now + _DAY)
        yield each.problem(
            Check.SUB_MINUTE,
            f"`{each.declaration.cron}` runs every {format_duration(closest)} at its closest, "
            f"{a_day:,} times within a day",
            f"HISTORY_MAX_RUNS keeps {kept:,} of these runs. Let one run in a minute do the "
            "work of several, or silence this if it is meant.",
        )


def too_long(name: str, schedule: Schedule, pace: Pace, now: datetime) -> Iterator[Problem]:
    """Yield a warning for a task with runs that take longer than its interval."""
    closest = shortest_interval(schedule, now) if pace.runs >= ENOUGH else None
    if closest is not None and pace.took > closest:
        yield Problem(
            check=Check.LONGER_THAN_INTERVAL,
            place=f"task {name!r}",
            message=f"its last {pace.runs:,} runs took {format_duration(pace.took)} on average, "
            f"and `{schedule.expression.text}` comes every {format_duration(closest)}",
            hint="Let it run less often or do less, or choose by `overlap_policy` what becomes "
            "of an occurrence during a run.",
            task=name,
        )


def shortest_interval(schedule: Schedule, now: datetime) -> timedelta | None:
    """Return the shortest time between two of the next occurrences, ``None`` where there is one."""
    coming = islice(schedule.upcoming(now), _LOOKED_AT)
    return min((later - sooner for sooner, later in pairwise(coming)), default=None)


LOOK_AHEAD: Final = timedelta(days=731)
"""Clock changes are searched this far ahead."""

_SECOND = timedelta(seconds=1)
_HOUR = timedelta(hours=1)
_QUARTER = timedelta(days=91)
_FIELD_NAMES = 5


class Advice(NamedTuple):
    """A surprise in a declaration, and its fix."""

    check: Check
    message: str
    hint: str


def advise(
    declared: Iterable[Declared], now: datetime, project_zone: ZoneInfo | None
) -> Iterator[Problem]:
    """Yield warnings and notes about accepted declarations."""
    silent: dict[tuple[ZoneInfo, Transition], list[str]] = defaultdict(list)
    declared = list(declared)
    yield from crowds(declared, now)
    for each in declared:
        for advice in _of_one(each, now, project_zone):
            yield each.problem(*advice)
        schedule = each.declaration.schedule
        if (fold := _silent_in(schedule, now)) is not None:
            silent[schedule.zone, fold].append(each.declaration.name)
    for (zone, fold), names in silent.items():
        yield _silence(zone, fold, names)


def _of_one(each: Declared, now: datetime, project_zone: ZoneInfo | None) -> Iterator[Advice]:
    # The anchor of ``@every`` does not affect any warning.
    declaration = each.declaration
    schedule = declaration.schedule.anchored(now)
    if schedule is not declaration.schedule:
        declaration = replace(declaration, schedule=schedule)
    upcoming = schedule.next_after(now)
    for rule in _TEXT_RULES:
        yield from rule(declaration)
    if upcoming is None:
        message = f"`{declaration.cron}` has no occurrence within 50 years"
        yield Advice(Check.NO_OCCURRENCE, message, "Its local times fall into gaps of the zone.")
        return
    for dated in _DATED_RULES:
        yield from dated(declaration, now)
    if not each.zone_is_said and project_zone is not None:
        yield from _zone_assumed(declaration, upcoming, project_zone)


def _either_day(declaration: Declaration) -> Iterator[Advice]:
    if declaration.schedule.expression.restricted_both:
        message = f"`{declaration.cron}` restricts both day fields: it runs when either matches"
        hint = "Leave one of them `*`. " + (
            "The first Monday is `1#1` as the weekday."
            if declaration.dialect == "ojs"
            else "No posix expression says “the first Monday”: "
            "restrict the weekday and let the task look at the day."
        )
        yield Advice(Check.EITHER_DAY, message, hint)


def _starred(declaration: Declaration) -> Iterator[Advice]:
    """Warn about a star where a zero was probably meant."""
    *seconds, minute, hour, day, month, weekday = _fields(declaration.cron)
    days = [day, month, weekday]
    if minute == "*" and declaration.schedule.expression.hour_restricted:
        often, meant, unit = "60 times in each matching hour", [*seconds, "0", hour], "minute"
    elif minute == hour == "*" and not {"*", "?"}.issuperset(days):
        often, meant, unit = "1,440 times a day", [*seconds, "0", "0"], "minute"
    elif seconds == ["*"] and minute != "*":
        often, meant, unit = "60 times in each matching minute", ["0", minute, hour], "second"
    else:
        return
    text = " ".join([*meant, *days])
    message = f"`{declaration.cron}` runs {often}; did you mean `{text}`?"
    hint = f"Write `0-59` as the {unit} if every {unit} is meant."
    yield Advice(Check.EVERY_MINUTE_OF_HOURS, message, hint)


def _seconds_first(declaration: Declaration) -> Iterator[Advice]:
    """Warn about six fields that are probably five fields and a year."""
    fields = declaration.cron.split()
    if (
        len(fields) != _FIELD_NAMES + 1
        or fields[5] not in ("*", "?")
        or fields[2] not in ("*", "?")
    ):
        return
    minute, hour = fields[:2]
    if minute.isdecimal() and hour.isdecimal() and int(hour) < 24:
        message = (
            f"`{declaration.cron}` has the seconds first: it runs in every hour, at minute {hour} "
            f"and second {minute}; did you mean `{' '.join(fields[:5])}`?"
        )
        hint = "Write `0-23` as the hour if every hour is meant. There is no field for the year."
        yield Advice(Check.EVERY_MINUTE_OF_HOURS, message, hint)


def _fields(text: str) -> list[str]:
    """Return the fields of an expression, five at least; macros and intervals have none."""
    fields = text.split()
    return fields if len(fields) >= _FIELD_NAMES else [""] * _FIELD_NAMES


def _remarks(declaration: Declaration) -> Iterator[Advice]:
    for remark in remarks_on(declaration.schedule.expression):
        hint = "Nothing needs to change if that is meant."
        yield Advice(Check.REMARK, f"`{declaration.cron}`: {remark}", hint)


def _uneven(declaration: Declaration) -> Iterator[Advice]:
    """Warn about a step that does not divide its minute, hour or day."""
    fields = declaration.cron.split()
    names = _FIELDS if len(fields) == _FIELD_NAMES + 1 else _FIELDS[1:]
    for (name, size), text in zip(names, _fields(declaration.cron), strict=False):
        step = _STEP.fullmatch(text)
        number = int(step[1]) if step else 0
        if 1 < number < size and size % number:
            message = (
                f"`{declaration.cron}`: `{text}` does not go into {size} {name}s, "
                f"so the last interval is {size % number} {name}s long"
            )
            hint = "Write a step that goes into it, or the values one by one if that is meant."
            yield Advice(Check.UNEVEN_STEP, message, hint)


def _lacks_arguments(declaration: Declaration) -> Iterator[Advice]:
    target = declaration.target
    try:
        signature = inspect.signature(target.function)
    except Exception:
        # Foreign code may raise anything when its signature is read.
        return
    context = {"run": None} if "run" in signature.parameters else {}
    try:
        signature.bind(*target.args, **context)
    except TypeError as error:
        message = f"`{target.text}` cannot be called as declared: {error}"
        hint = 'Give positional arguments by "args" in a dict entry.'
        yield Advice(Check.LACKS_ARGUMENTS, message, hint)


def _some_years(declaration: Declaration, now: datetime) -> Iterator[Advice]:
    schedule = declaration.schedule
    upcoming = schedule.next_after(now)
    if upcoming is not None and fires_only_in_some_years(schedule.expression):
        date = upcoming.astimezone(schedule.zone).date()
        message = f"`{declaration.cron}` runs only in some years, next {date}"
        yield Advice(Check.SOME_YEARS, message, "Write day 28 or 1 to run every year.")


def _lost_in_gap(declaration: Declaration, now: datetime) -> Iterator[Advice]:
    schedule = declaration.schedule
    if schedule.gap == "shift":
        return
    found = schedule.expression.lost_between(now, now + LOOK_AHEAD, schedule.zone)
    if not found:
        return
    lost = found[0]
    following = schedule.next_after(lost.resumes_at - _SECOND)
    if following is not None and following - lost.resumes_at < _HOUR:
        # If the next run follows within an hour, the lost one does not matter.
        return
    message = (
        f"the local time {lost.civil:%H:%M} does not exist on {lost.civil:%Y-%m-%d} in "
        f"{declaration.timezone}: no run then, the next one is {_local(following, schedule.zone)}"
    )
    hint = 'Choose another hour, or write `"gap": "shift"` in a dict entry to run after the gap.'
    yield Advice(Check.LOST_IN_GAP, message, hint)


def _first_pass_only(declaration: Declaration, now: datetime) -> Iterator[Advice]:
    schedule = declaration.schedule
    if schedule.fold == "both" or not schedule.expression.hour_restricted:
        return
    fold = _next_repeat(schedule, now)
    if fold is not None:
        local = schedule.expression.next_after(fold.instant - _SECOND, schedule.zone, fold="both")
        message = (
            f"the local time {_local(local, schedule.zone)} comes twice in "
            f"{declaration.timezone}: it runs the first time only"
        )
        hint = 'Write `"fold": "both"` in a dict entry to run both times.'
        yield Advice(Check.FIRST_PASS_ONLY, message, hint)


def _zone_assumed(
    declaration: Declaration, upcoming: datetime, project_zone: ZoneInfo
) -> Iterator[Advice]:
    fixed = declaration.schedule.expression.hour_restricted
    if fixed and _differs(declaration.schedule.zone, project_zone, upcoming):
        message = (
            f"names no time zone, so `{declaration.cron}` is read in {declaration.timezone}: "
            f"the next run is at {upcoming.astimezone(project_zone):%H:%M} {project_zone.key}"
        )
        hint = (
            f'Write "timezone": "{project_zone.key}", '
            f'or "timezone": "{declaration.timezone}" if that is meant.'
        )
        yield Advice(Check.ZONE_ASSUMED, message, hint)


def _differs(one: ZoneInfo, other: ZoneInfo, start: datetime) -> bool:
    instants = (start + quarter * _QUARTER for quarter in range(4))
    return any(
        instant.astimezone(one).utcoffset() != instant.astimezone(other).utcoffset()
        for instant in instants
    )


def _silent_in(schedule: Schedule, now: datetime) -> Transition | None:
    expression = schedule.expression
    named = expression.every is None and not expression.hour_restricted
    hourly = named and schedule.fold == "first"
    return _next_repeat(schedule, now) if hourly else None


def _next_repeat(schedule: Schedule, now: datetime) -> Transition | None:
    """Return the next fold with an occurrence in its second pass."""
    for fold in _folds(schedule.zone, now):
        last = fold.instant + (fold.before - fold.after) - _SECOND
        named = schedule.expression.count_between(
            fold.instant - _SECOND, last, schedule.zone, fold="both"
        )
        if named:
            return fold
    return None


@lru_cache(maxsize=1024)
def _folds(zone: ZoneInfo, now: datetime) -> tuple[Transition, ...]:
    changes = next_transitions(zone, now, now + LOOK_AHEAD)
    return tuple(change for change in changes if change.after < change.before)


def _silence(zone: ZoneInfo, fold: Transition, names: list[str]) -> Problem:
    end = fold.instant + (fold.before - fold.after)
    message = (
        f"the local time in {zone.key} repeats itself on {_local(fold.instant, zone)[:10]}: "
        f"no runs from {fold.instant:%H:%M} to {end:%H:%M} UTC of {_some(names)}"
    )
    hint = 'Write `"fold": "both"` in a dict entry, or use the time zone UTC.'
    return Problem(check=Check.SILENT_IN_FOLD, place=zone.key, message=message, hint=hint)


def _some(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN]))
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def _local(instant: datetime | None, zone: ZoneInfo) -> str:
    return "unknown" if instant is None else f"{instant.astimezone(zone):%Y-%m-%d %H:%M}"


_TEXT_RULES: Final[tuple[Callable[[Declaration], Iterator[Advice]], ...]] = (
    _either_day,
    _starred,
    _seconds_first,
    _remarks,
    _uneven,
    _lacks_arguments,
)
_DATED_RULES: Final[tuple[Callable[[Declaration, datetime], Iterator[Advice]], ...]] = (
    _some_years,
    _lost_in_gap,
    _first_pass_only,
)
