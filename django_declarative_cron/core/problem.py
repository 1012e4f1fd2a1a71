"""What is wrong with what is declared, or merely surprising: a value, with its fix."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ..exceptions import DeclarativeCronError, safe


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
        """Give the letter of its severity: E, W or I."""
        return self.rpartition(".")[2][0]

    @property
    def page(self) -> str:
        """Give where the documentation says more of it, empty where the table says all."""
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
