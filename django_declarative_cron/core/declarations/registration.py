"""Items that say the same beside their names: what was understood of one is true of all.

Items that say the same beside their names and their cron expressions share all but that: of
another expression nothing is asked but whether it can be parsed. Only what nothing was to be told
of is remembered, and whatever is remarkable is read in full, so that it is told of as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple, cast
from zoneinfo import ZoneInfo

from ...cron import CronExpression, parse
from ...exceptions import (
    InvalidCronExpressionError,
    RegistrationShapeError,
    RegistrationsNotArrayError,
)
from ..retry import FixedDelay
from ..schedule import Calendars, Schedule
from .declaration import Declaration, Manner, Target, Terms
from .entry import read_entry
from .fields import (
    delay_hint,
    flaw_of_name,
    judge_delay,
    plain_text,
    read_cron,
    refuse_duplicate,
    refuse_name,
    resolve_callback,
)
from .item import Check, Declared, Item, Problem, Problems, Reader, Resolver, UnresolvableError

_made = tuple.__new__

_ATOMS: Final = frozenset({str, bool, int, timedelta, type(None)})
_HOLDERS: Final = frozenset({list, tuple, dict})
_APART: Final = frozenset({"name", "cron"})
_DEEPEST: Final = 32
"""Data may contain itself, and more than once: what is deeper is not followed on any way."""

Parts = tuple[Any, str, Hashable]
"""Name as given, text of the expression, and all else, as something that is equal for the same."""


class _TooDeepError(Exception):
    """Tell that data is too deep to be compared."""


class _Known(NamedTuple):
    """What was understood of items with the same rest.

    Args:
        terms: by the text of the expression.
        first: one of them.
        zone_is_said: as for ``Declared``.
        flaw_of_name: likewise.
    """

    terms: dict[str, Terms]
    first: Terms
    zone_is_said: bool
    flaw_of_name: Callable[[str], str | None]

    def at(self, cron: str) -> Terms | None:
        """Return the terms of an item with another expression, ``None`` where that is refused."""
        try:
            expression = parse(cron, self.first.dialect)
        except InvalidCronExpressionError:
            return None
        terms = self.terms[cron] = self.first.at(expression)
        return terms


class Alike:
    """What the items of one list say beside their names, understood once.

    Args:
        reader: of the list.
    """

    def __init__(self, reader: Reader) -> None:
        self._names, self._source = reader.names, reader.source
        self._known: dict[Hashable, _Known] = {}

    def read(self, parts: Parts | None, index: int) -> Declared | None:
        """Understand an item by one that was read in full, ``None`` where there is none."""
        if parts is None:
            return None
        name, cron, rest = parts
        known = self._known.get(rest)
        if known is None:
            return None
        if type(name) is not str or name in self._names or known.flaw_of_name(name) is not None:
            return None
        terms = known.terms.get(cron) or known.at(cron)
        if terms is None:
            return None
        self._names.add(name)
        # To make it by its own class would take twice as long.
        said = Declaration(name, terms), self._source, index, known.zone_is_said, known.flaw_of_name
        return _made(Declared, said)

    def remember(self, item: Item, parts: Parts | None, read: Declared) -> None:
        """Take what was understood for all that are alike."""
        # A spread makes different instants of different names.
        if parts is None or item.is_told_of or read.declaration.operating.spread:
            return
        _, cron, rest = parts
        terms = read.declaration.terms
        self._known[rest] = _Known({cron: terms}, terms, read.zone_is_said, read.flaw_of_name)


def parts_of(given: Any) -> Parts | None:
    """Take an item apart, ``None`` where it has another form."""
    if type(given) is tuple and len(given) == 4:
        name, cron, callback, delay = given
        if type(cron) is str and type(delay) is timedelta:
            return name, cron, (callback if type(callback) is str else id(callback), delay)
    elif type(given) is dict and type(cron := given.get("cron")) is str and "name" in given:
        with suppress(_TooDeepError):
            said = tuple([_spelled(value) for key, value in given.items() if key not in _APART])
            if set(map(type, given)) == {str}:
                return given["name"], cron, (tuple(given), said)
    return None


def _spelled(value: Any, depth: int = 0) -> Hashable:
    """Tell data apart that is equal and not the same: 1 and True, 0.0 and -0.0."""
    kind = type(value)
    if kind is float:
        return kind, value.hex()
    if kind in _ATOMS:
        return kind, value
    if kind not in _HOLDERS:
        # Of anything else, only the very same is alike.
        return id(value)
    if depth > _DEEPEST:
        raise _TooDeepError
    items = value.items() if kind is dict else value
    return kind, tuple([_spelled(item, depth + 1) for item in items])


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
