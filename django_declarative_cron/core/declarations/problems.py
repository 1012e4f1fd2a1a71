"""Problems of declarations and options: one table of checks, and one problem as a value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...exceptions import DeclarativeCronError, safe


class Check(StrEnum):
    """The kinds of problems, each with its stable id and a text; ``docs/checks.md`` lists them."""

    help: str

    def __new__(cls, code: str, text: str) -> Check:
        """Make a check of its code and its text."""
        check = str.__new__(cls, f"declarative_cron.{code}")
        check._value_ = f"declarative_cron.{code}"
        check.help = text
        return check

    LIST_SHAPE = "E001", "`SCHEDULED_TASKS` is not a list"
    ITEM_SHAPE = "E002", "an item is neither a 4-tuple of the right types nor a dict"
    UNKNOWN_KEY = "E003", "a key of a dict entry is unknown"
    KEY_VALUE = "E004", "a key of a dict entry is missing or its value is refused"
    NAME = "E005", "a name is refused"
    WHAT_RUNS = "E006", "none or several of `callback`, `type` and `command` are given"
    IMPORT_PATH = "E007", "an import path leads to nothing, or to nothing that can be called"
    NOT_IMPORTABLE = "E008", "a callable in settings cannot be imported by name"
    DUPLICATE = "E009", "two tasks have the same name"
    CRON = "E010", "a cron expression is refused"
    NEVER_FIRES = "E011", "a cron expression matches no date"
    ZONE = "E012", "a time zone is refused"
    RETRY_DELAY = "E013", "a retry delay is refused"
    COMMAND = "E015", "a management command does not exist or is written wrongly"
    RETRY_POLICY = "E016", "a retry policy is refused"
    CALENDAR = "E017", "`exclude_calendars` names an unknown calendar"
    TOO_LONG = "E018", "a text or data is too long"
    CALENDAR_FILE = "E019", "a calendar file is too large, or has events that repeat within a day"
    OPTIONS_SHAPE = "E020", "`DECLARATIVE_CRON` is not a dict"
    UNKNOWN_OPTION = "E021", "an option is unknown"
    OPTION_VALUE = "E022", "the value of an option is refused"
    OPTION_RELATION = "E023", "two options contradict each other"
    NO_TRANSACTIONS = "E030", "the database does not support transactions"
    HANDLER = "E040", "two functions are registered for the same type"
    SINK_LIBRARY = "E050", "`EVENT_SINK` is set and urllib3 is not installed"
    WATCH_LIBRARY = "E051", "check-ins or notifications need a library that is not installed"
    RUNNER = "E060", "the runner does not support the entry"
    ENGINE = "E061", "the backend in `TASKS` does not accept the runs of a task"
    EITHER_DAY = "W001", "both day fields are restricted: either match is enough"
    EVERY_MINUTE_OF_HOURS = "W002", "runs every minute of certain hours"
    ZONE_ASSUMED = "W003", "a dict entry without a time zone is read in UTC"
    ZONE_UNSET = "W004", "`TIME_ZONE` is `None`: UTC is assumed"
    LOST_IN_GAP = "W005", "a run will be lost when clocks go forward"
    SILENT_IN_FOLD = "W006", "tasks will pause when clocks go back"
    NO_OCCURRENCE = "W007", "no occurrence within 50 years"
    MANAGED_KEY = "W008", "the scheduler sets this key, so its value is ignored"
    LACKS_ARGUMENTS = "W009", "a callback does not accept the declared arguments"
    LATE_RENEWAL = "W010", "one late renewal loses the lease"
    HELD_ROWS = "W011", "the database cannot skip locked rows"
    RETRY_CAPPED = "W012", "the longest interval of a retry policy is shorter than the first one"
    REMARK = "W013", "part of an expression does not mean what it seems to mean"
    SILENT_CALENDAR = "W014", "a calendar does not answer"
    SMALL_POOL = "W015", "a connection pool has fewer connections than `WORKERS`"
    IN_EACH_TENANT = "W016", "the app is in `TENANT_APPS`: each tenant has tables of its own"
    TASKS_MODULE = "W040", "the `tasks` module of an app cannot be imported"
    UNSAFE_SINK = "W050", "events are posted without a signature or without encryption"
    UNSIGNED_NOTICE = "W051", "a webhook sends notifications without a signature"
    MONITORED_BY_NOBODY = "W052", "a task has `monitor`, and no destination is set"
    CANNOT_BE_ENDED = "W060", "a thread cannot be ended at its timeout"
    NO_ENGINE = "W061", "the backend in `TASKS` has no workers"
    NO_FORK = "W062", "this system cannot run callbacks in processes"
    CROWD = "W070", "many tasks begin in the same minute"
    UNEVEN_STEP = "W071", "a step does not divide its hour or day"
    LONGER_THAN_INTERVAL = "W072", "the runs of a task take longer than its interval"
    SUB_MINUTE = "W073", "a task runs more often than once a minute (`check --deploy` only)"
    SOME_YEARS = "I001", "runs only in some years"
    FIRST_PASS_ONLY = "I002", "a local time that occurs twice: the task runs the first time only"
    LONG_GRACE = "I003", "containers must be configured to wait for a long grace period"

    @property
    def level(self) -> str:
        """Return the letter of its severity: E, W or I."""
        return self.code[0]

    @property
    def code(self) -> str:
        """Return its id without the prefix, such as ``E001``."""
        return self.rpartition(".")[2]

    @property
    def page(self) -> str:
        """Return the place of a longer explanation, or an empty text."""
        return f"docs/checks.md#{self.code.lower()}" if self in LINTED else ""


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
"""The checks of schedules that work as written; each has a section of its own in the docs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem, with its place and its fix.

    Args:
        check: its kind.
        place: such as ``SCHEDULED_TASKS[3] 'send-digests'``.
        message: the mistake.
        hint: the fix.
        index: position in the list, from 0.
        task: name of the task, where it has an acceptable one.
        error: the error that ``initialize`` raises for it; ``None`` for warnings and options.
    """

    check: Check
    place: str
    message: str
    hint: str = ""
    index: int | None = None
    task: str | None = None
    error: DeclarativeCronError | None = None

    def __post_init__(self) -> None:
        # All three may repeat the input, so they are made safe to print.
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
        """Add a problem."""
        if self._stop_at_first and problem.error is not None:
            # The specified messages name neither the task nor the fix.
            problem.error.add_note(f"{problem.place}: {problem.hint}".rstrip(": "))
            raise problem.error
        self.found.append(problem)


class UnresolvableError(Exception):
    """A callback, a command or the project's time zone cannot be found.

    Args:
        check: the kind of problem.
        reason: the mistake, readable after the name of the field.
        hint: the fix.
    """

    def __init__(self, check: Check, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.check = check
        self.reason = reason
        self.hint = hint
