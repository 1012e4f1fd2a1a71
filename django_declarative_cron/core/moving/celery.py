"""From Celery's beat: its schedule in settings, and the tables of django-celery-beat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, NamedTuple

from . import fields
from .called import CALL, Binder, called, unbound
from .moved import NO_RETRY, Difference, Moved, UntranslatableError, named

GENERAL: Final = (
    Difference(
        "catch-up",
        "beat made up for a time that it missed if it remembered its last run; here one run "
        "always makes up for the latest missed one",
    ),
    Difference(
        "overlap",
        '"allow" keeps that runs may overlap; leave it out to skip a time during a run',
    ),
    Difference(
        "retry", "the policy of one attempt keeps that beat retries nothing; leave it out for three"
    ),
)
IN_PROCESS: Final = Difference(
    "callback",
    "beat sent tasks to Celery's workers; here runscheduler calls them itself, so that bind, "
    "autoretry_for, time limits and rate limits of Celery do not count (--keep-workers goes on "
    "sending them)",
)
STILL_SENT: Final = Difference(
    "callback", "a run ends when the task was sent: whether it succeeded is Celery's to tell"
)

# Celery numbers weekdays as cron does, goes over the end of a range, and has no 7.
_MINUTE: Final = fields.MINUTE._replace(wraps=True)
_HOUR: Final = fields.HOUR._replace(wraps=True)
_DAY: Final = fields.DAY._replace(wraps=True)
_MONTH: Final = fields.MONTH._replace(wraps=True)
_WEEKDAY: Final = fields.Grammar(0, 6, fields.SUNDAY_FIRST, wraps=True)
_OF_SENDING: Final = ("queue", "exchange", "routing_key", "priority", "headers", "expires")


class Crontab(NamedTuple):
    """Hold the fields of a crontab of Celery, as they were written."""

    minute: str = "*"
    hour: str = "*"
    day_of_month: str = "*"
    month_of_year: str = "*"
    day_of_week: str = "*"


@dataclass(frozen=True, slots=True)
class Beat:
    """One entry of beat.

    Args:
        name: of the entry.
        task: name of the task, mostly its dotted path.
        when: a crontab, an interval, or what else it is in words.
        zone: in which a crontab is read.
        args: positional arguments.
        kwargs: arguments by name.
        options: of sending it.
        enabled: whether it is on.
        description: words for people.
        one_off: it runs once, and is switched off.
        starts: when it begins, in words, empty for at once.
        ends: when it expires, in words, empty for never.
    """

    name: str
    task: str
    when: Crontab | timedelta | str
    zone: str = "UTC"
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    enabled: bool = True
    description: str = ""
    one_off: bool = False
    starts: str = ""
    ends: str = ""


def moved(
    beats: Iterable[Beat], bind: Binder = unbound, *, keep_workers: bool = False
) -> tuple[Moved, ...]:
    """Return entries for those of beat."""
    return named(_moved(beat, bind, keep_workers) for beat in beats)


def _moved(beat: Beat, bind: Binder, keep_workers: bool) -> Moved:
    try:
        when, told = _when(beat)
        keys, also = _sent(beat) if keep_workers else _called(beat, bind)
    except UntranslatableError as error:
        return Moved(beat.name, None).refused(str(error))
    entry: dict[str, Any] = {**when, **keys, "overlap_policy": "allow"}
    entry["options"] = {"retry": dict(NO_RETRY)}
    if beat.description:
        entry["description"] = beat.description
    if not beat.enabled:
        entry["enabled"] = False
        told.append(Difference("enabled", "it was switched off, and is"))
    return Moved(beat.name, entry, (*told, *also, *_limits(beat)))


def _limits(beat: Beat) -> list[Difference]:
    found = []
    if beat.starts:
        found.append(Difference("ends", f"it was to begin at {beat.starts}; it begins at once now"))
    if beat.ends:
        found.append(Difference("ends", f"it was to expire at {beat.ends}; it has no end now"))
    return found


def _when(beat: Beat) -> tuple[dict[str, Any], list[Difference]]:
    if beat.one_off:
        raise UntranslatableError("it runs once: run it by hand or by `cron run` when it is time")
    if isinstance(beat.when, str):
        raise UntranslatableError(f"{beat.when} is no time of a clock or calendar")
    if isinstance(beat.when, timedelta):
        told = "counts from when the task is first registered, not from its last run"
        return {"cron": fields.every(beat.when)}, [Difference("schedule", told)]
    return {"cron": cron_of(beat.when), "timezone": beat.zone}, _days_told(beat.when)


def _days_told(when: Crontab) -> list[Difference]:
    if "*" in (when.day_of_month, when.day_of_week):
        return []
    told = "both day fields had to match in Celery; the entry says the same by `weekday#week`"
    return [Difference("days", told)]


def cron_of(when: Crontab) -> str:
    """Return the expression that names the same minutes.

    Raises:
        UntranslatableError: there is none.
    """
    named_days = _WEEKDAY.read(when.day_of_week)
    day, weekday = fields.both_days(_DAY.read(when.day_of_month), named_days)
    minute = fields.field(_MINUTE.read(when.minute), fields.MINUTE)
    hour = fields.field(_HOUR.read(when.hour), fields.HOUR)
    month = fields.field(_MONTH.read(when.month_of_year), fields.MONTH)
    return f"{minute} {hour} {day} {month} {weekday}"


def _called(beat: Beat, bind: Binder) -> tuple[dict[str, Any], list[Difference]]:
    keys, told = called(beat.task, beat.args, beat.kwargs, bind)
    queue = beat.options.get("queue")
    if queue:
        told.append(Difference("queue", f"was sent to the queue {queue!r} of Celery"))
    for key in _OF_SENDING[1:]:
        if beat.options.get(key) not in (None, "", {}):
            told.append(Difference("queue", f"`{key}` says nothing where nothing is sent"))
    return keys, told


def _sent(beat: Beat) -> tuple[dict[str, Any], list[Difference]]:
    options = {key: value for key, value in beat.options.items() if value not in (None, "", {})}
    if not options and not beat.kwargs:
        return called(f"{beat.task}.delay", beat.args, {})
    path = f"{beat.task}.apply_async"
    keys, _ = called(path, [list(beat.args), dict(beat.kwargs)], options)
    if not options:
        return keys, []
    return keys, [Difference("arguments", f"`{CALL}` hands its options on to `{path}`")]
