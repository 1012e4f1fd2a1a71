"""Items that say the same beside their names: what was understood of one is true of all."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import timedelta
from typing import Any, Final

from .declaration import Declaration
from .reading import Declared, Item, Reader

_ATOMS: Final = frozenset({str, bool, int, float, timedelta, type(None)})
_HOLDERS: Final = frozenset({list, tuple, dict})
_DEEPEST: Final = 32
"""Data may contain itself."""


class Alike:
    """What the items of one list say beside their names, understood once.

    Only what nothing was to be told of is remembered. Whatever is remarkable is read in full.

    Args:
        reader: of the list.
    """

    def __init__(self, reader: Reader) -> None:
        self._names, self._source = reader.names, reader.source
        self._known: dict[Hashable, Declared] = {}

    def read(self, given: Any, key: Hashable, index: int) -> Declared | None:
        """Understand an item by one that was read in full, ``None`` where there is none.

        Args:
            given: the item.
            key: as ``key_of`` gives it.
            index: position in the list, from 0.
        """
        before = self._known.get(key) if key is not None else None
        if before is None:
            return None
        name = given["name"] if type(given) is dict else given[0]
        if type(name) is not str or name in self._names or before.flaw_of_name(name) is not None:
            return None
        self._names.add(name)
        declaration = Declaration(name, before.declaration.terms)
        return Declared(declaration, self._source, index, before.zone_is_said, before.flaw_of_name)

    def remember(self, item: Item, key: Hashable, read: Declared) -> None:
        """Take what was understood for all that are alike.

        Args:
            item: it was read from.
            key: as ``key_of`` gives it.
            read: what was understood.
        """
        # A spread makes different instants of different names.
        if key is not None and not item.is_told_of and not read.declaration.operating.spread:
            self._known[key] = read


def key_of(given: Any) -> Hashable:
    """Give what two items have in common that differ in their names at most, or ``None``.

    Args:
        given: an item, of whatever kind; it lives as long as the key is used.
    """
    if type(given) is tuple and len(given) == 4:
        _, cron, callback, delay = given
        if type(cron) is str and type(delay) is timedelta:
            return cron, callback if type(callback) is str else id(callback), delay
    elif type(given) is dict and "name" in given:
        said = tuple([_spelled(value) for key, value in given.items() if key != "name"])
        return (tuple(given), said) if all(type(key) is str for key in given) else None
    return None


def _spelled(value: Any, depth: int = 0) -> Hashable:
    """Tell data apart by its types as well: 1 and True are equal, and not the same."""
    kind = type(value)
    if kind in _ATOMS:
        return kind, value
    if kind not in _HOLDERS or depth > _DEEPEST:
        # Of anything else, only the very same is alike.
        return id(value)
    items = value.items() if kind is dict else value
    return kind, tuple([_spelled(item, depth + 1) for item in items])
