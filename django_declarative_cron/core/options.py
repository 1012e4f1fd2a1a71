"""The options of a scheduler, from a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, Final, cast

from .channels import Channel, read_channels
from .channels import remarks as remarks_on_channels
from .declarations.problems import Check, Problem
from .declarations.values import (
    LONGEST_NAME,
    MOST_WHOLE,
    flaw_of_text,
    in_short,
    listed,
    name_of_key,
    nearest,
    seconds_of,
)
from .event_sink import Sink, read_sink, remarks
from .monitor import Monitoring, read_monitoring

SETTING: Final = "DECLARATIVE_CRON"

_LONGEST: Final = timedelta(days=36500)
"""Beyond it, instants lie outside of what a calendar has."""

_KILLED_AFTER: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Options:
    """What can be set of a scheduler, by the names that settings use.

    Args:
        WORKERS: how many tasks run at the same time in one process.
        LEASE: how long a leader leads unheard of.
        RENEW: how often a process says that it is alive.
        DEAD_AFTER: how long a process counts as alive unheard of; ``LEASE`` unless given.
        GRACE: how long a stopping process waits for its runs.
        WATCHDOG_PROCESS: whether ``runscheduler`` starts a process that monitors it.
        ADMIN_ACTIONS: whether people may act in the admin, or only look.
        DEPLOYMENT: which of several schedulers in one database this is.
        RELEASE: of the project; it is shown with each scheduler.
        HISTORY_MAX_AGE: how long finished runs are kept.
        HISTORY_MAX_RUNS: how many finished runs are kept for one task.
        EVENT_SINK: where events are posted to, ``None`` for nowhere.
        HTTP_MAX_BODY: the largest body of a request to the HTTP binding, in bytes.
        HTTP_RATE: how many requests a minute one caller has in one process.
        EXTERNAL_WORKERS: whether types without a function here are taken for external workers.
        VISIBILITY_TIMEOUT: how long a worker that is not heard of keeps a run.
        METRICS_MAX_TASK_LABELS: of how many tasks the metrics have a label of their own.
        MONITOR: where check-ins of tasks go, ``None`` for nowhere.
        NOTIFY: whom people are told by that something needs them.
        CALENDARS: by name, what says of a day whether it is excluded: a function, the dotted
            path of one, or the path of a file that ends in ``.ics``.
    """

    WORKERS: int = 10
    LEASE: timedelta = timedelta(seconds=15)
    RENEW: timedelta = timedelta(seconds=5)
    DEAD_AFTER: timedelta | None = None
    GRACE: timedelta = timedelta(seconds=25)
    WATCHDOG_PROCESS: bool = True
    ADMIN_ACTIONS: bool = True
    DEPLOYMENT: str = "default"
    RELEASE: str = ""
    HISTORY_MAX_AGE: timedelta = timedelta(days=90)
    HISTORY_MAX_RUNS: int = 1000
    EVENT_SINK: Sink | None = None
    HTTP_MAX_BODY: int = 256 * 1024
    HTTP_RATE: int = 600
    EXTERNAL_WORKERS: bool = False
    VISIBILITY_TIMEOUT: timedelta = timedelta(minutes=10)
    METRICS_MAX_TASK_LABELS: int = 200
    MONITOR: Monitoring | None = None
    NOTIFY: tuple[Channel, ...] = ()
    CALENDARS: Mapping[str, str | Callable[[date], bool]] = field(default_factory=dict)

    @property
    def longest_silence(self) -> timedelta:
        """Return how long a process may be unheard of and count as alive."""
        return self.LEASE if self.DEAD_AFTER is None else self.DEAD_AFTER


class _RefusedError(ValueError):
    """Say what an option must be."""


def read_options(given: object) -> tuple[Options, list[Problem]]:
    """Understand the options; what is refused keeps its default."""
    if not isinstance(given, dict):
        message = f"must be a dict, not {type(given).__name__}"
        return Options(), [_problem(Check.OPTIONS_SHAPE, "", message, 'Write {"WORKERS": 10}.')]
    values: dict[str, Any] = {}
    problems = []
    for key, value in given.items():
        if key not in _READERS:
            problems.append(_unknown(name_of_key(key)))
            continue
        try:
            values[key] = _READERS[key](value)
        except _RefusedError as error:
            default = getattr(Options(), key)
            hint = _HINTS.get(key, f"The default is {default!r}.")
            problems.append(_problem(Check.OPTION_VALUE, key, str(error), hint))
    options = replace(Options(), **values)
    return options, problems + list(_relations(options))


def _problem(check: Check, key: str, message: str, hint: str) -> Problem:
    place = f"{SETTING}[{key!r}]" if key else SETTING
    return Problem(check=check, place=place, message=message, hint=hint)


def _unknown(key: str) -> Problem:
    near = nearest(key, _READERS)
    tail = f"; did you mean `{near}`?" if near else ""
    hint = f"Known options: {listed(_READERS)}."
    return _problem(Check.UNKNOWN_OPTION, key, f"is no known option{tail}", hint)


def _relations(options: Options) -> Iterator[Problem]:
    renew, lease = options.RENEW.total_seconds(), options.LEASE.total_seconds()
    if renew >= lease:
        message = f"must be less than LEASE: {renew:g} s against {lease:g} s"
        hint = "A lease that runs out before it is renewed makes the lead change hands for ever."
        yield _problem(Check.OPTION_RELATION, "RENEW", message, hint)
    elif renew * 2 > lease:
        message = f"leaves no second try within LEASE: {renew:g} s against {lease:g} s"
        hint = "Let RENEW be a third of LEASE."
        yield _problem(Check.LATE_RENEWAL, "RENEW", message, hint)
    silence = options.longest_silence.total_seconds()
    if silence < lease:
        message = f"must be at least LEASE: {silence:g} s against {lease:g} s"
        hint = "A leader would be taken for dead, and its runs started elsewhere, while it leads."
        yield _problem(Check.OPTION_RELATION, "DEAD_AFTER", message, hint)
    for remark in () if options.EVENT_SINK is None else remarks(options.EVENT_SINK):
        hint = "Give it an https `url`, and a `secret` that the receiver knows too."
        yield _problem(Check.UNSAFE_SINK, "EVENT_SINK", remark, hint)
    for remark in remarks_on_channels(options.NOTIFY):
        hint = "Give it a `secret` that the receiver knows too."
        yield _problem(Check.UNSIGNED_NOTICE, "NOTIFY", remark, hint)
    grace, killed = options.GRACE.total_seconds(), _KILLED_AFTER.total_seconds()
    if grace >= killed:
        message = f"leaves no time to end in order where a stop is cut off after {killed:g} s"
        hint = (
            f"Kubernetes kills {killed:g} s after SIGTERM, Compose after 10 s: set"
            " terminationGracePeriodSeconds or stop_grace_period"
            f" to more than {grace:g} s."
        )
        yield _problem(Check.LONG_GRACE, "GRACE", message, hint)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _RefusedError(f"must be a whole number of at least 1, not {in_short(value)}")
    if value > MOST_WHOLE:
        raise _RefusedError(f"must be at most {MOST_WHOLE}")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _RefusedError(f"must be True or False, not {in_short(value)}")
    return value


def _duration(least: timedelta) -> Callable[[Any], timedelta]:
    def read(value: Any) -> timedelta:
        duration = _timedelta(value)
        if duration is None:
            raise _RefusedError(
                f"must be a timedelta or a number of seconds, not {in_short(value)}"
            )
        if duration < least:
            found = f"{duration.total_seconds():g} s"
            raise _RefusedError(f"must be at least {least.total_seconds():g} s, not {found}")
        if duration > _LONGEST:
            raise _RefusedError(f"must be at most {_LONGEST.days} days, not {duration.days}")
        return duration

    return read


def _timedelta(value: Any) -> timedelta | None:
    if isinstance(value, timedelta):
        return value
    seconds = seconds_of(value)
    try:
        return None if seconds is None else timedelta(seconds=seconds)
    except OverflowError:
        return timedelta.max if value > 0 else timedelta.min


def _text(least: int) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise _RefusedError(f"must be a text, not {type(value).__name__}")
        if not least <= len(value) <= LONGEST_NAME:
            expected = f"{least} to {LONGEST_NAME} characters"
            raise _RefusedError(f"must have {expected}, found {len(value)}")
        flaw = flaw_of_text(value, one_line=True)
        if flaw is not None:
            raise _RefusedError(flaw)
        return value

    return read


def _read_by(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def reader(value: Any) -> Any:
        try:
            return read(value)
        except ValueError as error:
            raise _RefusedError(str(error)) from None

    return reader


def _unless_none(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _calendars(value: Any) -> Mapping[str, str | Callable[[date], bool]]:
    if not isinstance(value, dict):
        raise _RefusedError(f"must be a dict, not {type(value).__name__}")
    read_name = _text(1)
    return {read_name(name): _source(name, given) for name, given in value.items()}


def _source(name: str, given: Any) -> str | Callable[[date], bool]:
    if callable(given):
        return cast(Callable[[date], bool], given)
    text = given.__fspath__() if hasattr(given, "__fspath__") else given
    is_path = isinstance(text, str) and all(part.isidentifier() for part in text.split("."))
    if isinstance(text, str) and (text.endswith(".ics") or (is_path and "." in text)):
        return text
    raise _RefusedError(
        f"[{name!r}] must be a function, its dotted path, or the path of a file .ics,"
        f" not {in_short(given)}"
    )


_HINTS: Final = {"EVENT_SINK": 'Write {"url": "https://hooks.example.org/cron", "secret": "…"}.'}
_SECOND = timedelta(seconds=1)
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "WORKERS": _whole,
    "LEASE": _duration(_SECOND),
    "RENEW": _duration(timedelta(milliseconds=100)),
    "DEAD_AFTER": _unless_none(_duration(_SECOND)),
    "GRACE": _duration(timedelta(0)),
    "WATCHDOG_PROCESS": _truth,
    "ADMIN_ACTIONS": _truth,
    "DEPLOYMENT": _text(1),
    "RELEASE": _text(0),
    "HISTORY_MAX_AGE": _duration(_SECOND),
    "HISTORY_MAX_RUNS": _whole,
    "EVENT_SINK": _unless_none(_read_by(read_sink)),
    "HTTP_MAX_BODY": _whole,
    "HTTP_RATE": _whole,
    "EXTERNAL_WORKERS": _truth,
    "VISIBILITY_TIMEOUT": _duration(_SECOND),
    "METRICS_MAX_TASK_LABELS": _whole,
    "MONITOR": _unless_none(_read_by(read_monitoring)),
    "NOTIFY": _read_by(read_channels),
    "CALENDARS": _calendars,
}
