"""Problems of declarations and options: one table of checks, and one problem as a value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...exceptions import DeclarativeCronError, safe


class Check(StrEnum):
    """The kinds of problems: each has a stable id, a text and a fix, as the docs list them."""

    help: str
    fix: str

    def __new__(cls, code: str, text: str, fix: str) -> Check:
        """Make a check of its code, its text and its fix, both in Markdown."""
        check = str.__new__(cls, f"declarative_cron.{code}")
        check._value_ = f"declarative_cron.{code}"
        check.help, check.fix = text, fix
        return check

    LIST_SHAPE = ("E001", "`SCHEDULED_TASKS` is not a list", "Write a list in square brackets.")
    ITEM_SHAPE = (
        "E002",
        "an item is neither a 4-tuple of the right types nor a dict",
        "Write `(name, cron, callback, retry_delay)`. The hint names the part with the "
        "wrong type. A delay is a `timedelta`.",
    )
    UNKNOWN_KEY = (
        "E003",
        "a key of a dict entry is unknown",
        "Check the spelling. The nearest known key is suggested.",
    )
    KEY_VALUE = (
        "E004",
        "a key of a dict entry is missing or its value is refused",
        "Follow the hint. `args` takes JSON values, and is not allowed with `command`.",
    )
    NAME = (
        "E005",
        "a name is refused",
        "Use one line of 1 to 255 characters; in the long form lower-case letters, "
        "digits, `-` and `.`.",
    )
    WHAT_RUNS = (
        "E006",
        "none or several of `callback`, `type` and `command` are given",
        "Keep exactly one of them.",
    )
    IMPORT_PATH = (
        "E007",
        "an import path leads to nothing, or to nothing that can be called",
        "Correct the path; the nearest existing name is suggested. Classes and generators "
        "are no callbacks. If a module raises an exception on import, it is shown.",
    )
    NOT_IMPORTABLE = (
        "E008",
        "a callable in settings cannot be imported by name",
        "Replace the lambda, partial or nested function with a module-level function.",
    )
    DUPLICATE = ("E009", "two tasks have the same name", "Give each task its own name.")
    CRON = (
        "E010",
        "a cron expression is refused",
        "The hint suggests a valid expression: `*/15` becomes `0,15,30,45`.",
    )
    NEVER_FIRES = (
        "E011",
        "a cron expression matches no date",
        "Use a day that exists in at least one of the months.",
    )
    ZONE = (
        "E012",
        "a time zone is refused",
        "Use an IANA name such as `Europe/Berlin` or `UTC`. `EST`, `+02:00` and `UTC+5` "
        "are not accepted.",
    )
    RETRY_DELAY = (
        "E013",
        "a retry delay is refused",
        "Use a `timedelta` of zero, or from one millisecond to 36,500 days.",
    )
    COMMAND = (
        "E015",
        "a management command does not exist or is written wrongly",
        "Write the words that follow `manage.py`, as a list.",
    )
    RETRY_POLICY = (
        "E016",
        "a retry policy is refused",
        'Follow the hint: durations such as `"PT30S"`, and only one of `retry` and `retry_delay`.',
    )
    CALENDAR = (
        "E017",
        "`exclude_calendars` names an unknown calendar",
        'Use the suggested name, or add the calendar to `DECLARATIVE_CRON["CALENDARS"]`.',
    )
    TOO_LONG = (
        "E018",
        "a text or data is too long",
        "Limits: expression 1,000 characters, description 2,000, import path 200, `args` "
        "and `options` 65,536 as JSON, command 200 words. Store large data in a file or a "
        "row.",
    )
    CALENDAR_FILE = (
        "E019",
        "a calendar file is too large, or has events that repeat within a day",
        "Use a calendar of at most 1 MB with whole-day events, such as public holidays.",
    )
    OPTIONS_SHAPE = ("E020", "`DECLARATIVE_CRON` is not a dict", 'Write `{"WORKERS": 10}`.')
    UNKNOWN_OPTION = (
        "E021",
        "an option is unknown",
        "Check the spelling. The nearest option is suggested.",
    )
    OPTION_VALUE = (
        "E022",
        "the value of an option is refused",
        "The message gives the allowed values, the hint the default.",
    )
    OPTION_RELATION = (
        "E023",
        "two options contradict each other",
        "`RENEW` must be less than `LEASE`, and `DEAD_AFTER` at least `LEASE`.",
    )
    NO_TRANSACTIONS = (
        "E030",
        "the database does not support transactions",
        "On MySQL and MariaDB use InnoDB as the default storage engine. Reported by "
        "`migrate` and `check --database`.",
    )
    HANDLER = (
        "E040",
        "two functions are registered for the same type",
        'Give each function its own type in `@handler("…")`.',
    )
    SINK_LIBRARY = (
        "E050",
        "`EVENT_SINK` is set and the extra `events` is not installed",
        '`pip install "django-declarative-cron[events]"`',
    )
    WATCH_LIBRARY = (
        "E051",
        "check-ins or notifications need a library that is not installed",
        '`pip install "django-declarative-cron[events]"`, or `pip install sentry-sdk` for Sentry.',
    )
    RUNNER = (
        "E060",
        "the runner does not support the entry",
        "Follow the hint: processes need a dotted path, limits need a process, `atomic` "
        "needs a `def`.",
    )
    ENGINE = (
        "E061",
        "the backend in `TASKS` does not accept the runs of a task",
        "The hint lists the existing backends and queues.",
    )
    EITHER_DAY = (
        "W001",
        "both day fields are restricted: either match is enough",
        "Leave one of them `*`, or use `#` in the weekday for “the first Monday”.",
    )
    EVERY_MINUTE_OF_HOURS = (
        "W002",
        "runs every minute of certain hours",
        "Write `0 4 * * *` for one run, or `0-59 4 * * *` to confirm 60 runs.",
    )
    ZONE_ASSUMED = (
        "W003",
        "a dict entry without a time zone is read in UTC",
        'Write `timezone`, even if it is `"UTC"`.',
    )
    ZONE_UNSET = ("W004", "`TIME_ZONE` is `None`: UTC is assumed", "Set `TIME_ZONE`.")
    LOST_IN_GAP = (
        "W005",
        "a run will be lost when clocks go forward",
        'Choose another hour, or `"gap": "shift"`.',
    )
    SILENT_IN_FOLD = (
        "W006",
        "tasks will pause when clocks go back",
        'Use `"fold": "both"`, or `"timezone": "UTC"`.',
    )
    NO_OCCURRENCE = (
        "W007",
        "no occurrence within 50 years",
        "All local times of the schedule are in gaps of its zone. Choose another time.",
    )
    MANAGED_KEY = (
        "W008",
        "the scheduler sets this key, so its value is ignored",
        "Remove `last_run_at`, `next_run_at`, `run_count` and `created_at`.",
    )
    LACKS_ARGUMENTS = (
        "W009",
        "a callback does not accept the declared arguments",
        "Pass positional arguments in `args` (long form).",
    )
    LATE_RENEWAL = (
        "W010",
        "one late renewal loses the lease",
        "Set `RENEW` to a third of `LEASE`.",
    )
    HELD_ROWS = (
        "W011",
        "the database cannot skip locked rows",
        "Use MariaDB 10.6, MySQL 8, PostgreSQL, or newer. Reported by `migrate` and "
        "`check --database`.",
    )
    RETRY_CAPPED = (
        "W012",
        "the longest interval of a retry policy is shorter than the first one",
        'Set a longer `max_interval` (default `"PT5M"`).',
    )
    REMARK = (
        "W013",
        "part of an expression does not mean what it seems to mean",
        "Check the expression: a day that some months do not have, a step longer than its "
        "range, or an interval below one second.",
    )
    SILENT_CALENDAR = (
        "W014",
        "a calendar does not answer",
        "Fix the function or the file. Until then, due tasks that use the calendar are set aside.",
    )
    SMALL_POOL = (
        "W015",
        "a connection pool has fewer connections than `WORKERS`",
        "Increase `max_size` of the pool, or decrease `WORKERS`: callbacks wait up to 30 "
        "s for a connection.",
    )
    IN_EACH_TENANT = (
        "W016",
        "the app is in `TENANT_APPS`: each tenant has tables of its own",
        "Move the app to `SHARED_APPS`.",
    )
    TASKS_MODULE = (
        "W040",
        "the `tasks` module of an app cannot be imported",
        "Fix the module if it registers types with `@handler`; otherwise ignore the warning.",
    )
    UNSAFE_SINK = (
        "W050",
        "events are posted without a signature or without encryption",
        "Set a `secret`, and a `url` with `https`.",
    )
    UNSIGNED_NOTICE = (
        "W051",
        "a webhook sends notifications without a signature",
        "Set a `secret` that the receiver knows.",
    )
    MONITORED_BY_NOBODY = (
        "W052",
        "a task has `monitor`, and no destination is set",
        "Set `sentry` or `ping` in `MONITOR`, or a `ping` of the task.",
    )
    CANNOT_BE_ENDED = (
        "W060",
        "a thread cannot be ended at its timeout",
        'Remove `runner`, or set it to `"process"`; or check `run.cancelled` in the callback.',
    )
    NO_ENGINE = (
        "W061",
        "the backend in `TASKS` has no workers",
        "Configure a backend with workers for production.",
    )
    NO_FORK = (
        "W062",
        "this system cannot run callbacks in processes",
        'Use `"runner": "thread"`, or run the scheduler on a Unix system.',
    )
    CROWD = (
        "W070",
        "many tasks begin in the same minute",
        "Spread the tasks, or increase `WORKERS`.",
    )
    UNEVEN_STEP = (
        "W071",
        "a step does not divide its hour or day",
        "Use a step that divides the hour or day, or list the values.",
    )
    LONGER_THAN_INTERVAL = (
        "W072",
        "the runs of a task take longer than its interval",
        "Run the task less often, or shorten it. Reported by `migrate`, `check "
        "--database` and `cron list`.",
    )
    SUB_MINUTE = (
        "W073",
        "a task runs more often than once a minute (`check --deploy` only)",
        "Do the work of several runs in one run per minute.",
    )
    SOME_YEARS = (
        "I001",
        "runs only in some years",
        "For a run in every year use day 28 or 1: `0 0 29 2 *` runs in leap years only.",
    )
    FIRST_PASS_ONLY = (
        "I002",
        "a local time that occurs twice: the task runs the first time only",
        'Use `"fold": "both"` to run both times.',
    )
    LONG_GRACE = (
        "I003",
        "containers must be configured to wait for a long grace period",
        "Set `terminationGracePeriodSeconds` or `stop_grace_period` to more than `GRACE`.",
    )

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
