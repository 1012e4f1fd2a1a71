"""Assertions about declared tasks: when they are due, whether they are valid, their snapshot.

They use no database and start nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

from django.core import checks
from django.test import override_settings

from .. import conf
from ..checks import TAG
from ..core.declarations.declaration import Declaration
from ..core.declarations.values import nearest
from ..core.schedule_snapshot import difference, first_day, yearbook
from ..formatting import format_count
from ..runtime.clock import system_clock
from .clock import Instant

MOST = 10_000
"""The maximum number of occurrences of an assertion."""

_SHOWN = 20
_SHOWN_LINES = 60
_INSTANT = timedelta(microseconds=1)

Between = tuple[Instant, Instant]


def occurrences(
    name: str,
    *,
    between: Between,
    tasks: object = None,
    registered_at: Instant | None = None,
) -> list[datetime]:
    """Return the occurrences of a task in a time span, in its time zone.

    Args:
        name: of the task.
        between: the start, and the end, which is excluded. Instants without an offset are
            local times of the task; a date is its midnight.
        tasks: replaces ``SCHEDULED_TASKS``.
        registered_at: the start of an ``@every`` schedule.

    Raises:
        AssertionError: the task is unknown, or is due more than ``MOST`` times.
        ValueError: an instant is invalid.
        DeclarativeCronError: a declaration is invalid, or a calendar fails.
    """
    __tracebackhide__ = True
    declaration = _declared(name, tasks)
    begin, end = _span(declaration, between)
    due = _due(_counting(declaration, registered_at), begin, end)
    return [instant.astimezone(declaration.schedule.zone) for instant in due]


def assert_fires(
    name: str,
    *,
    between: Between,
    at: Iterable[Instant],
    tasks: object = None,
    registered_at: Instant | None = None,
) -> None:
    """Assert that a task is due at exactly these instants of a time span.

    Args:
        name: of the task.
        between: as for ``occurrences``.
        at: the instants, in any order; empty if the task must not be due.
        tasks: as for ``occurrences``.
        registered_at: as for ``occurrences``.

    Raises:
        AssertionError: the occurrences differ; the message lists missing and additional ones.
        ValueError: an instant is invalid, or outside the time span.
        DeclarativeCronError: a declaration is invalid.
    """
    __tracebackhide__ = True
    declaration = _declared(name, tasks)
    begin, end = _span(declaration, between)
    zone = declaration.schedule.zone
    expected = {_in_zone(each, zone) for each in at}
    outside = sorted(each for each in expected if not begin <= each < end)
    if outside:
        said = ", ".join(_shown(each, zone) for each in outside)
        raise ValueError(f"not in the span of time that is looked at: {said}")
    found = set(_due(_counting(declaration, registered_at), begin, end))
    if found != expected:
        raise AssertionError("\n".join(_wrong(declaration, begin, end, expected, found)))


def assert_schedule_valid(*, tasks: object = None, allow: Collection[str] = ()) -> None:
    """Assert that the checks of declared tasks report no error and no warning.

    Args:
        tasks: as for ``occurrences``.
        allow: ids of accepted warnings, such as ``W001``, in addition to those in
            ``SILENCED_SYSTEM_CHECKS``.

    Raises:
        AssertionError: the checks report something; the message has the hints.
    """
    __tracebackhide__ = True
    allowed = {each if "." in each else f"{TAG}.{each}" for each in allow}
    given = nullcontext() if tasks is None else override_settings(SCHEDULED_TASKS=tasks)
    with given:
        found = [
            each
            for each in checks.run_checks(tags=[TAG])
            if each.level >= checks.WARNING and not each.is_silenced() and each.id not in allowed
        ]
    if found:
        said = "\n".join(f"  {each}" for each in found)
        raise AssertionError(f"{format_count(len(found), 'remark')} on what is declared:\n{said}")


def _declared(name: str, tasks: object) -> Declaration:
    __tracebackhide__ = True
    every = {each.name: each for each in _all_declared(tasks)}
    if name not in every:
        near = nearest(name, every)
        hint = f"did you mean {near!r}?" if near else f"there are {', '.join(every) or 'none'}"
        raise AssertionError(f"no task is declared as {name!r}; {hint}")
    return every[name]


def _all_declared(tasks: object) -> Sequence[Declaration]:
    return conf.declarations(conf.registrations() if tasks is None else tasks)


def _span(declaration: Declaration, between: Between) -> tuple[datetime, datetime]:
    begin, end = (_in_zone(each, declaration.schedule.zone) for each in between)
    if end <= begin:
        raise ValueError(f"the span of time ends at {end}, before it begins at {begin}")
    return begin, end


def _counting(declaration: Declaration, registered_at: Instant | None) -> Declaration:
    schedule = declaration.schedule
    if schedule.expression.every is None:
        return declaration
    if registered_at is None:
        raise ValueError(f"{declaration.cron} counts from the registration: give registered_at")
    anchored = schedule.anchored(_in_zone(registered_at, schedule.zone))
    return replace(declaration, schedule=anchored)


def _due(declaration: Declaration, begin: datetime, end: datetime) -> list[datetime]:
    __tracebackhide__ = True
    schedule, found = declaration.schedule, list[datetime]()
    if not declaration.enabled:
        return found
    for instant in schedule.upcoming(begin - _INSTANT):
        if instant >= end:
            break
        # The scheduler ignores a failing calendar; in a test it is an error.
        schedule.calendar_at(instant)
        found.append(instant)
        if len(found) > MOST:
            raise AssertionError(
                f"{declaration.name!r} is due more than {MOST} times; ask for less"
            )
    return found


def _wrong(
    declaration: Declaration,
    begin: datetime,
    end: datetime,
    expected: set[datetime],
    found: set[datetime],
) -> list[str]:
    zone, schedule = declaration.schedule.zone, declaration.schedule
    lines = [
        f"{declaration.name!r} ({declaration.cron}, {zone.key}) is not due as expected"
        f" from {_shown(begin, zone)} up to {_shown(end, zone)}:"
    ]
    lines += _listed("missing", expected - found, zone)
    lines += _listed("too many", found - expected, zone)
    if expected & found:
        lines.append(f"  as expected: {len(expected & found)}")
    for lost in schedule.lost_between(begin - _INSTANT, end - _INSTANT):
        lines.append(f"  {lost.civil:%Y-%m-%d %H:%M} does not exist in {zone.key}: no run then")
    for day in islice(schedule.excluded_between(begin - _INSTANT, end - _INSTANT), _SHOWN):
        lines.append(f"  {schedule.day_of(day.first)} has no run: calendar {day.calendar!r}")
    if schedule.offset:
        lines.append(f"  Each is {schedule.offset} later than its expression says: `spread`.")
    if not declaration.enabled:
        lines.append("  It is disabled.")
    return lines


def _listed(title: str, instants: set[datetime], zone: ZoneInfo) -> list[str]:
    ordered = sorted(instants)
    lines = [f"  {title}: {_shown(each, zone)}" for each in ordered[:_SHOWN]]
    more = len(ordered) - _SHOWN
    return [*lines, f"  {title}: {more} more"] if more > 0 else lines


def _in_zone(value: Instant, zone: ZoneInfo) -> datetime:
    """Read an instant; where it names no zone, it is a local time of the task's.

    Raises:
        ValueError: it is invalid, it does not exist there, or it occurs twice.
    """
    read = datetime.fromisoformat(value) if isinstance(value, str) else value
    if read.tzinfo is not None:
        return read.astimezone(UTC)
    passes = {read.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    real = sorted(at for at in passes if at.astimezone(zone).replace(tzinfo=None) == read)
    if not real:
        raise ValueError(f"{read:%Y-%m-%d %H:%M} does not exist in {zone.key}: the clock leaps")
    if len(real) > 1:
        both = " or ".join(at.astimezone(zone).isoformat(" ", "minutes") for at in real)
        raise ValueError(f"{read:%Y-%m-%d %H:%M} happens twice in {zone.key}: write {both}")
    return real[0]


def _shown(instant: datetime, zone: ZoneInfo) -> str:
    local = instant.astimezone(zone)
    return f"{local:%a} {local.isoformat(' ', 'seconds' if local.second else 'minutes')}"


def assert_schedule_snapshot(
    path: Path | str, *, rewrite: bool = False, tasks: object = None
) -> None:
    """Assert that a file contains the dates of every task in its year.

    Args:
        path: of the file.
        rewrite: write the file instead, starting with this month.
        tasks: replaces ``SCHEDULED_TASKS``.

    Raises:
        AssertionError: the file is missing, invalid or different; the message has the lines
            that differ.
        DeclarativeCronError: a declaration is invalid.
    """
    __tracebackhide__ = True
    file, declarations = Path(path), _all_declared(tasks)
    if rewrite:
        today = system_clock.now().astimezone(conf.project_zone()).date()
        file.write_text(yearbook(declarations, today.replace(day=1)), encoding="utf-8")
        return
    how = f"pytest --cron-snapshot-rewrite, or manage.py cron snapshot {path}"
    kept = file.read_text(encoding="utf-8") if file.is_file() else None
    first = None if kept is None else first_day(kept)
    if kept is None or first is None:
        what = "is not there" if kept is None else "is not a snapshot of a schedule"
        raise AssertionError(f"{path} {what}; write it with {how}")
    present = yearbook(declarations, first)
    if kept == present:
        return
    lines = difference(kept, present, file.name) or ["(only blank lines or line ends differ)"]
    more = [f"… and {len(lines) - _SHOWN_LINES} more lines"] if len(lines) > _SHOWN_LINES else []
    said = "\n".join([*lines[:_SHOWN_LINES], *more])
    raise AssertionError(
        f"the schedule is not that of {file.name} any more:\n{said}\n"
        f"If that is meant: {how}, and commit the file."
    )
