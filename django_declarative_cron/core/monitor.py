"""Read the options of external monitors, and derive the definition of each monitor; pure.

A monitor expects a check-in at each occurrence and alerts if it is missing. The option ``MONITOR``
names the receivers of check-ins; the key ``monitor`` of a task enables or overrides it. Monitors
support cron with five fields only. Any other schedule becomes a heartbeat: an interval as long as
the longest time between two occurrences.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Final

from ..cron import CronExpression
from ..cron.suggestions import listed
from .channels import url
from .readers import MINUTE, TENTH, Reader, duration, read_keys, truth, whole
from .schedule import Schedule

if TYPE_CHECKING:
    from .declarations.declaration import Declaration

LONGEST_SLUG: Final = 50
"""Characters that every monitor accepts in the slug of a check."""

_YEAR = timedelta(days=366)
_LOOKED_AT: Final = 64
_SLUG: Final = re.compile(r"[a-z0-9_-]+")
_PLACE: Final = "{slug}"


@dataclass(frozen=True, slots=True)
class Monitoring:
    """The option ``MONITOR``.

    Args:
        sentry: send check-ins by the Sentry SDK of the project.
        ping: URL that is requested at each start and end; contains ``{slug}``.
        api: URL of the management API for the checks of ``ping``.
        api_key: for ``api``.
        every_task: monitor tasks without the key ``monitor`` too.
        margin: accepted delay of a check-in.
        max_runtime: of tasks without ``timeout``.
        timeout: for one request.
    """

    sentry: bool = False
    ping: str = field(default="", repr=False)
    api: str = ""
    api_key: str = field(default="", repr=False)
    every_task: bool = False
    margin: timedelta = timedelta(minutes=5)
    max_runtime: timedelta = timedelta(hours=1)
    timeout: timedelta = timedelta(seconds=5)

    @property
    def needs_http(self) -> bool:
        """Return whether HTTP requests are sent."""
        return bool(self.ping or self.api)


@dataclass(frozen=True, slots=True)
class Monitor:
    """The key ``monitor`` of a task; ``None`` means the value of the option.

    Args:
        is_wanted: whether the task is monitored.
        sentry: send check-ins by the Sentry SDK.
        ping: URL of the check of this task.
        slug: of the check.
        margin: accepted delay of a check-in.
        max_runtime: of one run.
        failures: number of failed check-ins in a row that raises an alert.
        recoveries: number of successful ones in a row that ends it.
    """

    is_wanted: bool = True
    sentry: bool | None = None
    ping: str | None = field(default=None, repr=False)
    slug: str | None = None
    margin: timedelta | None = None
    max_runtime: timedelta | None = None
    failures: int | None = None
    recoveries: int | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of the monitor of a task.

    Args:
        slug: of the check.
        cron: five fields, empty for a heartbeat.
        every: the interval of a heartbeat.
        timezone: IANA name.
        margin: accepted delay of a check-in.
        max_runtime: of one run.
        failures: number of failed check-ins in a row that raises an alert.
        recoveries: number of successful ones in a row that ends it.
        sentry: send check-ins by the Sentry SDK.
        ping: URL of the check, or empty.
    """

    slug: str
    cron: str
    every: timedelta
    timezone: str
    margin: timedelta
    max_runtime: timedelta
    failures: int | None
    recoveries: int | None
    sentry: bool
    ping: str = field(repr=False)

    @property
    def is_heartbeat(self) -> bool:
        """Return whether the monitor expects an interval."""
        return not self.cron


def define(declaration: Declaration, option: Monitoring | None, now: datetime) -> Definition | None:
    """Return the definition for a task, ``None`` if it is not monitored."""
    own, common = declaration.monitor, option or Monitoring()
    if own is None:
        own = Monitor(is_wanted=common.every_task)
    slug = own.slug or slug_of(declaration.name)
    ping = common.ping.replace(_PLACE, slug) if own.ping is None else own.ping
    sentry = common.sentry if own.sentry is None else own.sentry
    if not own.is_wanted or not (ping or sentry):
        return None
    margin = own.margin or common.margin
    limit = declaration.timeout
    longest = own.max_runtime or (common.max_runtime if limit is None else limit + margin)
    schedule = declaration.schedule
    # A spread and excluded days cannot be expressed in five fields.
    is_plain = not schedule.offset and schedule.is_complete
    cron = five_fields(schedule.expression) if is_plain else None
    return Definition(
        slug=slug,
        cron=cron or "",
        every=timedelta(0) if cron else longest_rest(schedule, now),
        timezone=declaration.timezone,
        margin=margin,
        max_runtime=longest,
        failures=own.failures,
        recoveries=own.recoveries,
        sentry=sentry,
        ping=ping,
    )


def slug_of(name: str) -> str:
    """Return the slug for a task: its name, or a unique one derived from it."""
    if _SLUG.fullmatch(name) and len(name) <= LONGEST_SLUG:
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    words = re.sub(r"[^a-z0-9_-]+", "-", name.lower())[: LONGEST_SLUG - 9].strip("-")
    return f"{words}-{mark}" if words else mark


def five_fields(expression: CronExpression) -> str | None:
    """Return an expression in the syntax of all monitors, ``None`` if that is impossible.

    Steps, names and macros become lists of numbers.
    """
    cannot = expression.every is not None or expression.seconds != {0}
    if cannot or expression.day_rules or expression.weekday_rules:
        return None
    days = expression.days if expression.day_restricted else range(1, 32)
    weekdays = expression.weekdays if expression.weekday_restricted else range(7)
    fields = (
        (expression.minutes, 0, 59),
        (expression.hours, 0, 23),
        (days, 1, 31),
        (expression.months, 1, 12),
        (weekdays, 0, 6),
    )
    written = [_field(values, first, last) for values, first, last in fields]
    # With a star in one day field, cron requires both fields to match instead of either.
    if expression.restricted_both:
        written[2] = "1-31" if written[2] == "*" else written[2]
        written[4] = "0-6" if written[4] == "*" else written[4]
    return " ".join(written)


def longest_rest(schedule: Schedule, now: datetime) -> timedelta:
    """Return the longest time between two of the next occurrences, in whole minutes, at least 1."""
    every = schedule.expression.every
    if every is None:
        coming = islice(schedule.upcoming(now), _LOOKED_AT)
        every = max((later - earlier for earlier, later in pairwise(coming)), default=_YEAR)
    longest = max((every, *_around_excluded_days(schedule.anchored(now), now)))
    return max(math.ceil(longest / MINUTE), 1) * MINUTE


def _around_excluded_days(schedule: Schedule, now: datetime) -> Iterator[timedelta]:
    for day in schedule.excluded_between(now, now + _YEAR):
        earlier = schedule.latest_at_or_before(day.first)
        later = schedule.next_after(day.last)
        if earlier is not None and later is not None:
            yield later - earlier


def _field(values: Iterable[int], first: int, last: int) -> str:
    return "*" if set(values) == set(range(first, last + 1)) else listed(values)


def read_monitoring(given: object) -> Monitoring:
    """Return the option ``MONITOR``.

    Raises:
        ValueError: it is invalid; the message contains no address and no key.
    """
    found = Monitoring(**read_keys(given, _OPTION, "a dict or None"))
    if not (found.sentry or found.ping):
        raise ValueError("must have `sentry` or `ping`")
    if bool(found.api) != bool(found.api_key):
        raise ValueError("must have both of `api` and `api_key`, or none")
    return found


def read_monitor(given: object) -> Monitor:
    """Return the key ``monitor`` of a task.

    Raises:
        ValueError: it is invalid; the message contains no address.
    """
    if isinstance(given, bool):
        return Monitor(is_wanted=given)
    if isinstance(given, str):
        return Monitor(ping=url(given))
    return Monitor(**read_keys(given, _KEY, "True, False, a URL or a dict"))


def _template(value: Any) -> str:
    url(value.replace(_PLACE, "slug") if isinstance(value, str) else value)
    if _PLACE not in value:
        raise ValueError("must contain {slug}, which is replaced for each task")
    return str(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or not value.isascii() or not value.isprintable():
        raise ValueError("must be a text of printable ASCII")
    return value


def _slug(value: Any) -> str:
    if not isinstance(value, str) or not _SLUG.fullmatch(value) or len(value) > LONGEST_SLUG:
        raise ValueError(f"must be 1 to {LONGEST_SLUG} of the characters a-z, 0-9, - and _")
    return value


_margin = duration(MINUTE, timedelta(days=30))
_OPTION: Final[Mapping[str, Reader]] = {
    "sentry": truth,
    "ping": _template,
    "api": url,
    "api_key": _text,
    "every_task": truth,
    "margin": _margin,
    "max_runtime": _margin,
    "timeout": duration(TENTH, MINUTE),
}
_KEY: Final[Mapping[str, Reader]] = {
    "sentry": truth,
    "ping": url,
    "slug": _slug,
    "margin": _margin,
    "max_runtime": _margin,
    "failures": whole(),
    "recoveries": whole(),
}
