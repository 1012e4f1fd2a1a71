"""A list of items read a column at a time, where nothing stands in it but what is alike.

What items say beside their names and expressions is read once of each kind; the names are judged,
and the expressions are left to be read. Whatever else is in a list, and whatever is wrong in it,
is left to a reading of item after item: that one says what is wrong first, and where.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import Any, Final

from .alike import parts_of
from .declarations import Common, Declarations
from .parts import flaw_of_name, is_any_flawed
from .reading import Declared, Item, Reader

_Columns = tuple[Sequence[Any], Sequence[Any], Sequence[Hashable]]
"""Names, expressions and all else, of each item one."""

_PLACES: Final = tuple(map(itemgetter, range(4)))


def read_by_column(
    reader: Reader,
    registrations: list[Any],
    read_item: Callable[[Item], Declared | None],
    in_full: Callable[[], object],
) -> Declarations | None:
    """Understand a list but for its expressions, ``None`` where it is to be read in full.

    Args:
        reader: of the list; it stops at the first error.
        registrations: the list.
        read_item: reads one item in full.
        in_full: reads the whole list so.
    """
    columns = _columns_of(registrations)
    if columns is None:
        return None
    names, crons, rests = columns
    firsts = dict(zip(reversed(rests), reversed(range(len(rests))), strict=True))
    known: dict[Hashable, Declared] = {}
    for place in sorted(firsts.values()):
        declared = _of_all_alike(Item(reader, place, registrations[place]), read_item)
        if declared is None:
            return None
        known[rests[place]] = declared
    if is_any_flawed(names) or _is_one_unfit(names, rests, known):
        return None
    common = {rest: Common(each.declaration) for rest, each in known.items()}
    found = Declarations(names, crons, list(map(common.__getitem__, rests)), in_full)
    return found if len(found.places) == len(names) else None


def _is_one_unfit(
    names: Sequence[str], rests: Sequence[Hashable], known: Mapping[Hashable, Declared]
) -> bool:
    """Tell whether a name without a flaw has one in an item of its form."""
    if {each.flaw_of_name for each in known.values()} == {flaw_of_name}:
        return False
    return any(known[rest].flaw_of_name(name) for name, rest in zip(names, rests, strict=True))


def _columns_of(registrations: list[Any]) -> _Columns | None:
    names: Sequence[Any]
    crons: Sequence[Any]
    rests: Sequence[Hashable]
    if set(map(type, registrations)) == {tuple} and set(map(len, registrations)) == {4}:
        names, crons, callbacks, delays = (list(map(get, registrations)) for get in _PLACES)
        if set(map(type, delays)) != {timedelta}:
            return None
        # As ``parts_of`` has it: the items live as long as the columns are used.
        keys = [each if type(each) is str else id(each) for each in callbacks]
        rests = list(zip(keys, delays, strict=True))
    else:
        parts = [found for each in registrations if (found := parts_of(each)) is not None]
        if len(parts) < len(registrations) or not parts:
            return None
        names, crons, rests = zip(*parts, strict=True)
    if {str} != set(map(type, names)) or {str} != set(map(type, crons)):
        return None
    # What is not printable may separate fields, or what a digest is taken of.
    return (names, crons, rests) if "".join(crons).isprintable() else None


def _of_all_alike(item: Item, read_item: Callable[[Item], Declared | None]) -> Declared | None:
    """Read an item in full, ``None`` where that says nothing of those that are alike."""
    try:
        declared = read_item(item)
    except Exception:
        # Something before it may be wrong as well.
        return None
    # A spread makes different instants of different names.
    if declared is None or item.is_told_of or declared.declaration.operating.spread:
        return None
    return declared
