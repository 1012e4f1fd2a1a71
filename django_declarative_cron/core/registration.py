"""From what is written in settings or given to ``initialize`` to declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache, lru_cache
from typing import Any, cast
from zoneinfo import ZoneInfo

from ..cron import CronExpression
from ..exceptions import RegistrationShapeError, RegistrationsNotArrayError
from .alike import Alike, parts_of
from .declaration import Declaration, Manner, Target, Terms
from .entry import read_entry
from .exclusion import Calendars
from .parts import (
    delay_hint,
    flaw_of_name,
    judge_delay,
    plain_text,
    read_cron,
    refuse_duplicate,
    refuse_name,
    resolve_callback,
)
from .problem import Check, Problem, Problems
from .reading import Declared, Item, Reader, Resolver, UnresolvableError
from .retry import FixedDelay
from .schedule import Schedule

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
    """Understand a list of registrations (001 Registration Format, 002 CronJob Structure).

    Args:
        registrations: a list of 4-tuples and dicts.
        resolver: finds what runs.
        project_zone: gives the time zone of 4-tuples.
        calendars: that entries may name.
        problems: takes what is wrong, or raises the first error.
        source: what the list is called in messages.
        withheld: keys that dict entries of this list may not have.

    Raises:
        DeclarativeCronError: of the kind the specifications name for what is wrong. Order:
            list, then for each item shape, types, name, duplicate, cron, delay.
    """
    reader = Reader(resolver, cache(project_zone), source, problems, calendars, withheld)
    if isinstance(registrations, list):
        yield from _each(reader, registrations)
    else:
        problems.add(_not_a_list(source, registrations))


def _each(reader: Reader, registrations: list[Any]) -> Iterator[Declared]:
    alike = Alike(reader)
    for index, given in enumerate(registrations):
        parts = parts_of(given)
        read = alike.read(parts, index)
        if read is None:
            item = Item(reader, index, given)
            read = _read_item(item)
            if read is None:
                continue
            alike.remember(item, parts, read)
        yield read


def _not_a_list(source: str, given: object) -> Problem:
    error = RegistrationsNotArrayError()
    hint = f"Write a list in square brackets; this is of type {type(given).__name__}."
    return Problem(
        check=Check.LIST_SHAPE, place=source, message=error.message, hint=hint, error=error
    )


def _read_item(item: Item) -> Declared | None:
    match item.given:
        case dict():
            return read_entry(item)
        case tuple() | list():
            return _read_tuple(item)
    kind = type(item.given).__name__
    _refuse_shape(item, f"This is of type {kind}; write a tuple {PARTS}, or a dict.")
    return None


def _refuse_shape(item: Item, hint: str) -> None:
    item.refuse(Check.ITEM_SHAPE, RegistrationShapeError(item.index, item.given), hint)


def _read_tuple(item: Item) -> Declared | None:
    hints = _shape_hints(item.given)
    if hints:
        _refuse_shape(item, " ".join(hints))
        return None
    name, cron, callback, delay = item.given
    flaw = flaw_of_name(name)
    if flaw is None:
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
    terms = Terms.of(schedule, Manner(cast(Target, target), _fixed(delay)))
    return item.read(Declaration(plain_text(name), terms), flaw_of_name, zone_is_said=True)


# One for all that have the same.
_fixed = lru_cache(maxsize=1024)(FixedDelay)


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
