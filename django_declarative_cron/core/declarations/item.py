"""One item of a list of registrations while it is read, and the context that all items share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol
from zoneinfo import ZoneInfo

from ...exceptions import DeclarativeCronError, InvalidRegistrationError
from ..schedule import Calendars
from .declaration import Declaration, Target
from .problems import Check, Problem, Problems


class Resolver(Protocol):
    """Find callables; every method raises ``UnresolvableError``."""

    def callback(self, given: str | Callable[..., Any]) -> Target:
        """Resolve an import path, or accept a callable."""

    def type(self, given: str) -> Target:
        """Resolve the name of a type, or an import path in its place."""

    def command(self, words: tuple[str, ...]) -> Target:
        """Make a management command callable."""


class Declared(NamedTuple):
    """A declaration with its place in the list.

    Args:
        declaration: the item, understood.
        source: the name of its list in messages.
        position: in the list, from 0.
        zone_is_said: the item names its time zone, or has no key for one.
    """

    declaration: Declaration
    source: str
    position: int
    zone_is_said: bool

    @property
    def place(self) -> str:
        """Return the place of the item, for people."""
        return _place(self.source, self.position, self.declaration.name)

    def problem(self, check: Check, message: str, hint: str) -> Problem:
        """Return a problem of this item."""
        return Problem(
            check=check,
            place=self.place,
            message=message,
            hint=hint,
            index=self.position,
            task=self.declaration.name,
        )


def _place(source: str, index: int, name: str | None) -> str:
    # Names are quoted so that any terminal can show them.
    return f"{source}[{index}]" + ("" if name is None else f" {name!r}")


@dataclass(frozen=True, slots=True)
class Reader:
    """The context of one list.

    Args:
        resolver: finds callables.
        project_zone: returns the zone of an item whose form has no key for one; may raise
            ``UnresolvableError``.
        source: the name of the list in messages.
        problems: collects mistakes.
        calendars: the calendars that entries may name.
        withheld: keys that this list may not have; no hint names them.
        names: every name so far.
    """

    resolver: Resolver
    project_zone: Callable[[], ZoneInfo]
    source: str
    problems: Problems
    calendars: Calendars
    withheld: tuple[str, ...] = ()
    names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Item:
    """One item of the list.

    Args:
        reader: context of the list.
        index: position in the list, from 0.
        given: the item as it was given.
        name: of the task, as soon as it is known to be acceptable.
        is_sound: nothing was refused so far.
    """

    reader: Reader
    index: int
    given: Any
    name: str | None = None
    is_sound: bool = True

    def refuse(self, check: Check, error: DeclarativeCronError, hint: str = "") -> None:
        """Report an error."""
        self.is_sound = False
        self._report(check, error.message, hint, error)

    def refuse_field(
        self, check: Check, name: str, value: Any, reason: str, hint: str = ""
    ) -> None:
        """Report an error in one key or part."""
        self.refuse(check, InvalidRegistrationError(name, value, reason, task=self.name), hint)

    def warn(self, check: Check, message: str, hint: str = "") -> None:
        """Report a warning."""
        self._report(check, message, hint, None)

    def read(self, declaration: Declaration, *, zone_is_said: bool) -> Declared:
        """Return the declaration with the place of this item."""
        return Declared(declaration, self.reader.source, self.index, zone_is_said)

    def allowed(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return those of some keys that the list may have."""
        withheld = self.reader.withheld
        return tuple([key for key in keys if key not in withheld]) if withheld else tuple(keys)

    def _report(
        self, check: Check, message: str, hint: str, error: DeclarativeCronError | None
    ) -> None:
        if any(f'"{key}"' in hint for key in self.reader.withheld):
            hint = ""
        self.reader.problems.add(
            Problem(
                check=check,
                place=_place(self.reader.source, self.index, self.name),
                message=message,
                hint=hint,
                index=self.index,
                task=self.name,
                error=error,
            )
        )
