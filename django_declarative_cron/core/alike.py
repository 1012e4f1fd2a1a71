"""Items that say the same beside their names: what was understood of one is true of all.

Items that say the same beside their names and their cron expressions share all but that: of
another expression nothing is asked but whether it can be parsed. Only what nothing was to be told
of is remembered, and whatever is remarkable is read in full, so that it is told of as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, NamedTuple

from ..cron import parse
from ..exceptions import InvalidCronExpressionError
from .declaration import Declaration, Terms
from .reading import Declared, Item, Reader

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
        """Give the terms of an item with another expression, ``None`` where that is refused."""
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
        """Understand an item by one that was read in full, ``None`` where there is none.

        Args:
            parts: of the item.
            index: position in the list, from 0.
        """
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
        """Take what was understood for all that are alike.

        Args:
            item: it was read from.
            parts: of the item.
            read: what was understood.
        """
        # A spread makes different instants of different names.
        if parts is None or item.is_told_of or read.declaration.operating.spread:
            return
        _, cron, rest = parts
        terms = read.declaration.terms
        self._known[rest] = _Known({cron: terms}, terms, read.zone_is_said, read.flaw_of_name)


def parts_of(given: Any) -> Parts | None:
    """Take an item apart, ``None`` where it has another form.

    Args:
        given: an item, of whatever kind; it lives as long as its parts are used.
    """
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
