"""From what is written in settings or given to ``initialize`` to declarations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from ..exceptions import RegistrationShapeError, RegistrationsNotArrayError
from .declaration import Declaration
from .entry import read_entry
from .parts import (
    delay_hint,
    judge_delay,
    plain_text,
    read_cron,
    refuse_duplicate,
    resolve_callback,
    take_name,
)
from .problem import Check, Problem, Problems
from .reading import Declared, Item, Reader, Resolver
from .schedule import Schedule

PARTS = "(name, cron, callback, retry_delay)"


def read(
    registrations: object,
    resolver: Resolver,
    project_zone: Callable[[], ZoneInfo],
    *,
    source: str = "registrations",
    stop_at_first: bool = True,
) -> tuple[list[Declared], list[Problem]]:
    """Understand a list of registrations (001 Registration Format, 002 CronJob Structure).

    Args:
        registrations: a list of 4-tuples and dicts.
        resolver: finds what runs.
        project_zone: gives the time zone of 4-tuples.
        source: what the list is called in messages.
        stop_at_first: raise the first error; otherwise give all of them back.

    Raises:
        DeclarativeCronError: of the kind the specifications name for what is wrong. Order:
            list, then for each item shape, types, name, duplicate, cron, delay.
    """
    reader = Reader(resolver, project_zone, source, Problems(stop_at_first=stop_at_first))
    if not isinstance(registrations, list):
        reader.problems.add(_not_a_list(source, registrations))
        return [], reader.problems.found
    read_items = (_read_item(Item(reader, *pair)) for pair in enumerate(registrations))
    declared = [each for each in read_items if each is not None]
    return declared, reader.problems.found


def _not_a_list(source: str, given: object) -> Problem:
    error = RegistrationsNotArrayError()
    hint = f"Write a list in square brackets, not a {type(given).__name__}."
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
    _refuse_shape(item, f"This is a {kind}; write a tuple {PARTS}, or a dict.")
    return None


def _refuse_shape(item: Item, hint: str) -> None:
    item.refuse(Check.ITEM_SHAPE, RegistrationShapeError(item.index, item.given), hint)


def _read_tuple(item: Item) -> Declared | None:
    hints = _shape_hints(item.given)
    if hints:
        _refuse_shape(item, " ".join(hints))
        return None
    name, cron, callback, delay = item.given
    take_name(item, name)
    refuse_duplicate(item)
    expression = read_cron(item, cron)
    judge_delay(item, delay, "retryDelay")
    target = resolve_callback(item, callback, "callback")
    if not item.is_sound or expression is None or target is None or item.name is None:
        return None
    zone = item.reader.project_zone()
    declaration = Declaration(
        name=item.name,
        cron=plain_text(cron),
        timezone=zone.key,
        schedule=Schedule(expression, zone),
        target=target,
        retry_delay=delay,
    )
    return Declared(declaration, item.place, item.index, zone_is_said=True)


def _shape_hints(given: Any) -> list[str]:
    if len(given) != 4:
        return [f"{len(given)} parts were found; write {PARTS}."]
    name, cron, callback, delay = given
    hints = []
    if not isinstance(name, str):
        hints.append(f"The name is a {type(name).__name__}; write a text.")
    if not isinstance(cron, str):
        hints.append(f'The cron expression is a {type(cron).__name__}; write a text "0 7 * * 1-5".')
    if not isinstance(callback, str) and not callable(callback):
        kind = type(callback).__name__
        hints.append(f'The callback is a {kind}; write a dotted path "app.module.function".')
    if not isinstance(delay, timedelta):
        kind = type(delay).__name__
        hints.append(f"The retry delay is a {kind}; write {delay_hint(delay)}.")
    return hints
