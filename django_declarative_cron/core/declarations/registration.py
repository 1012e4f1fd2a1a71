"""Read a list of registrations: each item is read once and whole, as a 4-tuple or a dict entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from typing import Any, cast
from zoneinfo import ZoneInfo

from ...cron import CronExpression
from ...exceptions import RegistrationShapeError, RegistrationsNotArrayError
from ..retry import FixedDelay
from ..schedule import Calendars, Schedule
from .declaration import Declaration, Target
from .entry import read_entry
from .fields import (
    delay_hint,
    flaw_of_name,
    judge_delay,
    read_cron,
    refuse_duplicate,
    refuse_name,
    resolve_callback,
)
from .item import Declared, Item, Reader, Resolver
from .problems import Check, Problem, Problems, UnresolvableError
from .values import plain_text

PARTS = "(name, cron, callback, retry_delay)"


def read(
    registrations: object,
    resolver: Resolver,
    project_zone: Callable[[], ZoneInfo],
    calendars: Calendars,
    problems: Problems,
    *,
    source: str = "registrations",
    withheld: tuple[str, ...] = (),
) -> Iterator[Declared]:
    """Yield the declarations of a list (001 Registration Format, 002 CronJob Structure).

    Raises:
        DeclarativeCronError: of the kind that the specifications name for the mistake. Order:
            list, then for each item shape, types, name, duplicate, cron, delay.
    """
    reader = Reader(resolver, cache(project_zone), source, problems, calendars, withheld)
    if not isinstance(registrations, list):
        problems.add(_not_a_list(source, registrations))
        return
    for index, given in enumerate(registrations):
        declared = _read_item(Item(reader, index, given))
        if declared is not None:
            yield declared


def _not_a_list(source: str, given: object) -> Problem:
    error = RegistrationsNotArrayError()
    hint = f"Write a list in square brackets; this is of type {type(given).__name__}."
    return Problem(
        check=Check.LIST_SHAPE, place=source, message=error.message, hint=hint, error=error
    )


def _read_item(item: Item) -> Declared | None:
    if isinstance(item.given, tuple | list):
        return _read_tuple(item)
    if isinstance(item.given, dict):
        return read_entry(item)
    kind = type(item.given).__name__
    _refuse_shape(item, f"This is of type {kind}; write a tuple {PARTS}, or a dict.")
    return None


def _refuse_shape(item: Item, hint: str) -> None:
    item.refuse(Check.ITEM_SHAPE, RegistrationShapeError(item.index, item.given), hint)


def _read_tuple(item: Item) -> Declared | None:
    """Read a 4-tuple. Order: shape, name, duplicate, cron, delay, callback, project's zone."""
    if hints := _shape_hints(item.given):
        _refuse_shape(item, " ".join(hints))
        return None
    name, cron, callback, delay = item.given
    if (flaw := flaw_of_name(name)) is None:
        item.name = plain_text(name)
    else:
        refuse_name(item, name, flaw)
    refuse_duplicate(item)
    expression = read_cron(item, cron)
    judge_delay(item, delay, "retryDelay")
    target = resolve_callback(item, callback, "callback")
    zone = _project_zone(item)
    if not item.is_sound:
        return None
    schedule = Schedule(cast(CronExpression, expression), cast(ZoneInfo, zone))
    declaration = Declaration(
        cast(str, item.name), schedule, cast(Target, target), FixedDelay(delay)
    )
    return item.read(declaration, zone_is_said=True)


def _project_zone(item: Item) -> ZoneInfo | None:
    try:
        return item.reader.project_zone()
    except UnresolvableError as error:
        item.refuse_field(error.check, "timezone", None, error.reason, error.hint)
        return None


def _shape_hints(given: Any) -> list[str]:
    if len(given) != 4:
        return [f"{len(given)} parts were found; write {PARTS}."]
    name, cron, callback, delay = given
    hints = []
    if not isinstance(name, str):
        hints.append(f"The name is of type {type(name).__name__}; write a text.")
    if not isinstance(cron, str):
        kind = type(cron).__name__
        hints.append(f'The cron expression is of type {kind}; write a text "0 7 * * 1-5".')
    if not isinstance(callback, str) and not callable(callback):
        kind = type(callback).__name__
        hints.append(f'The callback is of type {kind}; write a path "app.module.function".')
    if not isinstance(delay, timedelta):
        kind = type(delay).__name__
        hints.append(f"The retry delay is of type {kind}; write {delay_hint(delay)}.")
    return hints
