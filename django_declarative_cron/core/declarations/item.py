"""What is wrong with what is declared, or merely surprising: a value, with its fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol
from zoneinfo import ZoneInfo

from ...exceptions import DeclarativeCronError, InvalidRegistrationError, safe
from ..schedule import Calendars
from .declaration import Declaration, Target


class Check(StrEnum):
    """Name each kind of problem for good; the table for people is in ``checks``."""

    LIST_SHAPE = "declarative_cron.E001"
    ITEM_SHAPE = "declarative_cron.E002"
    UNKNOWN_KEY = "declarative_cron.E003"
    KEY_VALUE = "declarative_cron.E004"
    NAME = "declarative_cron.E005"
    WHAT_RUNS = "declarative_cron.E006"
    IMPORT_PATH = "declarative_cron.E007"
    NOT_IMPORTABLE = "declarative_cron.E008"
    DUPLICATE = "declarative_cron.E009"
    CRON = "declarative_cron.E010"
    NEVER_FIRES = "declarative_cron.E011"
    ZONE = "declarative_cron.E012"
    RETRY_DELAY = "declarative_cron.E013"
    COMMAND = "declarative_cron.E015"
    RETRY_POLICY = "declarative_cron.E016"
    CALENDAR = "declarative_cron.E017"
    TOO_LONG = "declarative_cron.E018"
    CALENDAR_FILE = "declarative_cron.E019"
    OPTIONS_SHAPE = "declarative_cron.E020"
    UNKNOWN_OPTION = "declarative_cron.E021"
    OPTION_VALUE = "declarative_cron.E022"
    OPTION_RELATION = "declarative_cron.E023"
    NO_TRANSACTIONS = "declarative_cron.E030"
    HANDLER = "declarative_cron.E040"
    SINK_LIBRARY = "declarative_cron.E050"
    WATCH_LIBRARY = "declarative_cron.E051"
    RUNNER = "declarative_cron.E060"
    ENGINE = "declarative_cron.E061"
    EITHER_DAY = "declarative_cron.W001"
    EVERY_MINUTE_OF_HOURS = "declarative_cron.W002"
    ZONE_ASSUMED = "declarative_cron.W003"
    ZONE_UNSET = "declarative_cron.W004"
    LOST_IN_GAP = "declarative_cron.W005"
    SILENT_IN_FOLD = "declarative_cron.W006"
    NO_OCCURRENCE = "declarative_cron.W007"
    MANAGED_KEY = "declarative_cron.W008"
    LACKS_ARGUMENTS = "declarative_cron.W009"
    LATE_RENEWAL = "declarative_cron.W010"
    HELD_ROWS = "declarative_cron.W011"
    RETRY_CAPPED = "declarative_cron.W012"
    REMARK = "declarative_cron.W013"
    SILENT_CALENDAR = "declarative_cron.W014"
    SMALL_POOL = "declarative_cron.W015"
    IN_EACH_TENANT = "declarative_cron.W016"
    TASKS_MODULE = "declarative_cron.W040"
    UNSAFE_SINK = "declarative_cron.W050"
    UNSIGNED_NOTICE = "declarative_cron.W051"
    MONITORED_BY_NOBODY = "declarative_cron.W052"
    CANNOT_BE_ENDED = "declarative_cron.W060"
    NO_ENGINE = "declarative_cron.W061"
    NO_FORK = "declarative_cron.W062"
    CROWD = "declarative_cron.W070"
    UNEVEN_STEP = "declarative_cron.W071"
    LONGER_THAN_INTERVAL = "declarative_cron.W072"
    SUB_MINUTE = "declarative_cron.W073"
    SOME_YEARS = "declarative_cron.I001"
    FIRST_PASS_ONLY = "declarative_cron.I002"
    LONG_GRACE = "declarative_cron.I003"

    @property
    def level(self) -> str:
        """Return the letter of its severity: E, W or I."""
        return self.rpartition(".")[2][0]

    @property
    def page(self) -> str:
        """Return where the documentation says more of it, empty where the table says all."""
        code = self.rpartition(".")[2]
        return f"docs/checks.md#{code.lower()}" if self in LINTED else ""


LINTED: Final = frozenset(
    {
        Check.EITHER_DAY,
        Check.EVERY_MINUTE_OF_HOURS,
        Check.LOST_IN_GAP,
        Check.SILENT_IN_FOLD,
        Check.FIRST_PASS_ONLY,
        Check.CROWD,
        Check.UNEVEN_STEP,
        Check.LONGER_THAN_INTERVAL,
        Check.SUB_MINUTE,
    }
)
"""What is told of a schedule that works as it is written: each has a page of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem, where it is, and what to do about it.

    Args:
        check: its kind.
        place: where it stands, such as ``SCHEDULED_TASKS[3] 'send-digests'``.
        message: what is wrong.
        hint: what to write instead.
        index: position in the list, from 0.
        task: name of the task, where it has an acceptable one.
        error: what ``initialize`` raises for it; ``None`` for warnings and options.
    """

    check: Check
    place: str
    message: str
    hint: str = ""
    index: int | None = None
    task: str | None = None
    error: DeclarativeCronError | None = None

    def __post_init__(self) -> None:
        # Hints repeat what was given, as messages do.
        for name in ("place", "message", "hint"):
            object.__setattr__(self, name, safe(getattr(self, name), keep="\n"))


class Problems:
    """Collect problems, or stop at the first error.

    Args:
        stop_at_first: raise the error of the first problem that has one.
    """

    def __init__(self, *, stop_at_first: bool) -> None:
        self.found: list[Problem] = []
        self._stop_at_first = stop_at_first

    def add(self, problem: Problem) -> None:
        """Take a problem in."""
        if self._stop_at_first and problem.error is not None:
            # The specified messages name neither the task nor the fix.
            problem.error.add_note(f"{problem.place}: {problem.hint}".rstrip(": "))
            raise problem.error
        self.found.append(problem)


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
        """Return what was understood, with where it stands."""
        return Declared(declaration, self.reader.source, self.index, zone_is_said, flaw_of_name)

    def allowed(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return those of some keys that the list may have."""
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
