"""The options in ``DECLARATIVE_CRON``: one table with default, reader and help of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date, timedelta
from typing import Any, Final, cast

from .channels import Channel, read_channels
from .channels import remarks as remarks_on_channels
from .declarations.problems import Check, Problem
from .declarations.values import did_you_mean, hint_for_unknown, in_short
from .event_sink import Sink, read_sink, remarks
from .monitor import Monitoring, read_monitoring
from .readers import (
    SECOND,
    TENTH,
    ZERO,
    Flaw,
    Reader,
    duration,
    read_each,
    text,
    truth,
    unless_none,
    whole,
)

SETTING: Final = "DECLARATIVE_CRON"

_KILLED_AFTER: Final = timedelta(seconds=30)


def _calendars(value: Any) -> Mapping[str, str | Callable[[date], bool]]:
    if not isinstance(value, dict):
        raise ValueError(f"must be a dict, not {type(value).__name__}")
    read_name = text()
    return {read_name(name): _source(name, given) for name, given in value.items()}


def _source(name: str, given: Any) -> str | Callable[[date], bool]:
    if callable(given):
        return cast(Callable[[date], bool], given)
    text = given.__fspath__() if hasattr(given, "__fspath__") else given
    is_path = isinstance(text, str) and all(part.isidentifier() for part in text.split("."))
    if isinstance(text, str) and (text.endswith(".ics") or (is_path and "." in text)):
        return text
    raise ValueError(
        f"[{name!r}] must be a function, its dotted path, or the path of a file .ics,"
        f" not {in_short(given)}"
    )


def _option(default: Any, read: Reader, help_text: str, hint: str = "") -> Any:
    """Return the field of an option, with its reader, its text in the docs and its hint."""
    metadata = {"read": read, "help": help_text, "hint": hint}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Options:
    """All options, by the names that settings use."""

    WORKERS: int = _option(
        10, whole(), "number of synchronous callbacks that run at the same time in a process"
    )
    LEASE: timedelta = _option(
        timedelta(seconds=15),
        duration(SECOND),
        "lease time of the leader after its last renewal",
    )
    RENEW: timedelta = _option(
        timedelta(seconds=5),
        duration(TENTH),
        "interval of the heartbeat; best a third of `LEASE`",
    )
    DEAD_AFTER: timedelta | None = _option(
        None,
        unless_none(duration(SECOND)),
        "time after which a process without a heartbeat counts as dead; `LEASE` if not set",
    )
    GRACE: timedelta = _option(
        timedelta(seconds=25),
        duration(ZERO),
        "time that a stopping process waits for its runs",
    )
    WATCHDOG_PROCESS: bool = _option(
        True, truth, "start a watchdog process, which reports a crash immediately"
    )
    ADMIN_ACTIONS: bool = _option(
        True,
        truth,
        "allow actions in the admin; `False` makes the admin read-only, and HTTP read-only for"
        " users. Tokens and commands are not affected",
    )
    DEPLOYMENT: str = _option(
        "default", text(), "name of this deployment, if several share a database"
    )
    RELEASE: str = _option(
        "",
        text(0),
        "version, date or commit of the project; an older one does not supersede a newer one",
    )
    HISTORY_MAX_AGE: timedelta = _option(
        timedelta(days=90),
        duration(SECOND),
        "age after which runs are deleted, except for the newest success and failure",
    )
    HISTORY_MAX_RUNS: int = _option(
        1000, whole(), "number of runs that are kept per task, with skipped and missed ones"
    )
    EVENT_SINK: Sink | None = _option(
        None,
        unless_none(read_sink),
        "receiver that events are posted to: a dict with `url`, `secret` and more",
        'Write {"url": "https://hooks.example.org/cron", "secret": "…"}.',
    )
    HTTP_MAX_BODY: int = _option(256 * 1024, whole(), "largest body of an HTTP request, in bytes")
    HTTP_RATE: int = _option(
        600,
        whole(),
        "maximum number of HTTP requests per minute and caller, counted in the default cache",
    )
    EXTERNAL_WORKERS: bool = _option(
        False,
        truth,
        "accept tasks over HTTP whose type has no function here, for external workers",
    )
    VISIBILITY_TIMEOUT: timedelta = _option(
        timedelta(minutes=10),
        duration(SECOND),
        "time after which a run is handed out again if its external worker sends no heartbeat",
    )
    METRICS_MAX_TASK_LABELS: int = _option(
        200,
        whole(),
        "number of tasks with a label of their own; others share the label `other`",
    )
    METRICS_TAGS: bool = _option(
        False, truth, "report the tags of tasks too, as the label `tag` of `task_tag`"
    )
    MONITOR: Monitoring | None = _option(
        None,
        unless_none(read_monitoring),
        "receiver of the check-ins of tasks: a dict with `sentry`, `ping` and more",
    )
    NOTIFY: tuple[Channel, ...] = _option(
        (), read_channels, "channels that notifications are sent to: a list of dicts"
    )
    CALENDARS: Mapping[str, str | Callable[[date], bool]] = _option(
        {},
        _calendars,
        "calendars by name: a function, its dotted path, or the path of an `.ics` file",
    )

    @property
    def longest_silence(self) -> timedelta:
        """Return the time after which a process without a heartbeat counts as dead."""
        return self.LEASE if self.DEAD_AFTER is None else self.DEAD_AFTER


OPTIONS: Final = {each.name: each for each in fields(Options)}
"""The fields of ``Options`` by name; ``metadata`` has ``read``, ``help`` and ``hint``."""
_READERS: Final = {name: each.metadata["read"] for name, each in OPTIONS.items()}


def read_options(given: object) -> tuple[Options, list[Problem]]:
    """Return the options and their problems; a refused option keeps its default."""
    if not isinstance(given, dict):
        message = f"must be a dict, not {type(given).__name__}"
        return Options(), [_problem(Check.OPTIONS_SHAPE, "", message, 'Write {"WORKERS": 10}.')]
    values, flaws = read_each(given, _READERS)
    problems = [_unknown(flaw) if flaw.is_unknown else _refused(flaw) for flaw in flaws]
    options = replace(Options(), **values)
    return options, problems + list(_relations(options))


def _problem(check: Check, key: str, message: str, hint: str) -> Problem:
    place = f"{SETTING}[{key!r}]" if key else SETTING
    return Problem(check=check, place=place, message=message, hint=hint)


def _unknown(flaw: Flaw) -> Problem:
    message = f"is not a known option{did_you_mean(flaw.key, OPTIONS)}"
    hint = hint_for_unknown(flaw.key, OPTIONS, "options")
    return _problem(Check.UNKNOWN_OPTION, flaw.key, message, hint)


def _refused(flaw: Flaw) -> Problem:
    default = getattr(Options(), flaw.key)
    hint = OPTIONS[flaw.key].metadata["hint"] or f"The default is {default!r}."
    return _problem(Check.OPTION_VALUE, flaw.key, flaw.reason, hint)


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
