"""One item of the registrations while it is read, and what its reading needs.

Whatever is wrong is reported to the item and the reading goes on, so that one reading
finds all mistakes; reading for ``initialize`` ends at the first report instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol
from zoneinfo import ZoneInfo

from ..exceptions import DeclarativeCronError, InvalidRegistrationError
from .declaration import Declaration, Target
from .exclusion import Calendars
from .problem import Check, Problem, Problems


class UnresolvableError(Exception):
    """Say why a callback, a command or the project's time zone is not there.

    Args:
        check: the kind of problem.
        reason: what is wrong, readable after the name of the field.
        hint: what to write instead.
    """

    def __init__(self, check: Check, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.check = check
        self.reason = reason
        self.hint = hint


class Resolver(Protocol):
    """Find what runs; raises ``UnresolvableError``."""

    def callback(self, given: str | Callable[..., Any]) -> Target:
        """Resolve an import path or take a callable."""

    def type(self, given: str) -> Target:
        """Resolve the name of a type, or what may stand in its place."""

    def command(self, words: tuple[str, ...]) -> Target:
        """Make a management command callable."""


class Declared(NamedTuple):
    """A declaration with where it came from.

    Args:
        declaration: the item, understood.
        source: what its list is called in messages.
        position: in the list, from 0.
        zone_is_said: the item names its time zone, or has no key for one.
        flaw_of_name: says what is wrong with a name in an item of this form, or ``None``.
    """

    declaration: Declaration
    source: str
    position: int
    zone_is_said: bool
    flaw_of_name: Callable[[str], str | None]

    @property
    def place(self) -> str:
        """Say where the item stands, for people."""
        return _place(self.source, self.position, self.declaration.name)


def _place(source: str, index: int, name: str | None) -> str:
    # Names are quoted so that any terminal can show them.
    return f"{source}[{index}]" + ("" if name is None else f" {name!r}")


@dataclass(frozen=True, slots=True)
class Reader:
    """What the reading of one list needs and gathers.

    Args:
        resolver: finds what runs.
        project_zone: gives the zone of an item whose form has no key for one; may raise
            ``UnresolvableError``.
        source: what the list is called in messages.
        problems: takes what is wrong.
        calendars: that entries may name.
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
        reader: of the list.
        index: position in the list, from 0.
        given: the item as it was given.
        name: of the task, as soon as it is known to be acceptable.
        is_sound: nothing was refused so far.
        is_told_of: something was refused or remarked.
    """

    reader: Reader
    index: int
    given: Any
    name: str | None = None
    is_sound: bool = True
    is_told_of: bool = False

    @property
    def place(self) -> str:
        """Say where the item stands, for people."""
        return _place(self.reader.source, self.index, self.name)

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
        """Report what is no error."""
        self._report(check, message, hint, None)

    def read(
        self,
        declaration: Declaration,
        flaw_of_name: Callable[[str], str | None],
        *,
        zone_is_said: bool,
    ) -> Declared:
        """Give what was understood, with where it stands."""
        return Declared(declaration, self.reader.source, self.index, zone_is_said, flaw_of_name)

    def allowed(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Give those of some keys that the list may have."""
        return tuple(key for key in keys if key not in self.reader.withheld)

    def _report(
        self, check: Check, message: str, hint: str, error: DeclarativeCronError | None
    ) -> None:
        self.is_told_of = True
        if any(f'"{key}"' in hint for key in self.reader.withheld):
            hint = ""
        self.reader.problems.add(
            Problem(
                check=check,
                place=self.place,
                message=message,
                hint=hint,
                index=self.index,
                task=self.name,
                error=error,
            )
        )
