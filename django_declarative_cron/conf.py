"""The only reader of settings: ``SCHEDULED_TASKS`` and ``DECLARATIVE_CRON``.

Nothing is kept between calls, so a changed setting is seen at the next one.

=======================  =========  ======================================================
DECLARATIVE_CRON         default    meaning
=======================  =========  ======================================================
WORKERS                  10         how many tasks run at the same time in one process
LEASE                    15 s       how long a leader leads unheard of
RENEW                    5 s        how often a process says that it is alive
DEAD_AFTER               ``LEASE``  how long a process counts as alive unheard of
GRACE                    25 s       how long a stopping process waits for its runs
WATCHDOG_PROCESS         True       keep a process beside it that says that it lives
ADMIN_ACTIONS            True       whether people may act in the admin, or only look
DEPLOYMENT               "default"  which of several schedulers in one database this is
RELEASE                  ""         release of the project, shown with each scheduler
HISTORY_MAX_AGE          90 days    how long finished runs are kept
HISTORY_MAX_RUNS         1000       how many finished runs are kept for one task
EVENT_SINK               None       where events are posted to, see ``core.event_sink``
HTTP_MAX_BODY            262144     the largest body of an HTTP request, in bytes
HTTP_RATE                600        how many requests a minute one caller has
EXTERNAL_WORKERS         False      whether workers outside may have types of their own
VISIBILITY_TIMEOUT       10 min     how long a worker unheard of keeps a run
METRICS_MAX_TASK_LABELS  200        how many tasks have a label of their own
MONITOR                  None       where check-ins go, see ``core.monitor``
NOTIFY                   []         whom people are told by, see ``core.channels``
CALENDARS                {}         by name, what says which days are excluded
=======================  =========  ======================================================

Durations are a ``timedelta`` or a number of seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from operator import is_
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.crypto import salted_hmac
from django.utils.functional import LazyObject, Promise

from .calendars import Calendars
from .core.declarations.declaration import Declaration
from .core.declarations.item import Declared
from .core.declarations.problems import Check, Problem, Problems, UnresolvableError
from .core.declarations.registration import read
from .core.event_sink import Sink
from .core.http_api import FORBIDDEN
from .core.options import Options, read_options
from .exceptions import RegistrationShapeError, class_of, words_of
from .targets import Targets, Types

__all__ = ["Options", "declarations", "options", "problems", "registrations"]

_DEEPEST = 64


def registrations() -> object:
    """Give ``settings.SCHEDULED_TASKS`` as it stands, the empty list where it is not set."""
    return getattr(settings, "SCHEDULED_TASKS", [])


class LazyValueError(Exception):
    """Stand for a lazy value of the settings that raises: readers refuse it with its place."""


def evaluated(value: Any) -> Any:
    """Return a value of the settings with lazy values in it evaluated; the same where none is.

    Args:
        value: of any kind, such as a list with a ``SimpleLazyObject`` or a lazy translation; a
            list may contain itself, and more than once.
    """
    return _evaluated(value, 0, {})


def _evaluated(value: Any, depth: int, known: dict[int, Any]) -> Any:
    kind = type(value)
    if issubclass(kind, Promise | LazyObject):
        return _evaluated_lazy(value, depth, known)
    if depth >= _DEEPEST or kind not in (dict, list, tuple):
        return value
    if id(value) not in known:
        # What contains itself stays as it is there; what is shared is read once.
        known[id(value)] = value
        known[id(value)] = _with_items(value, depth, known)
    return known[id(value)]


def _with_items(value: Any, depth: int, known: dict[int, Any]) -> Any:
    def read(items: Iterable[Any]) -> list[Any]:
        return [_evaluated(each, depth + 1, known) for each in items]

    if isinstance(value, dict):
        keys, values = read(value), read(value.values())
        is_same = all(map(is_, keys, value)) and all(map(is_, values, value.values()))
        return value if is_same else dict(zip(keys, values, strict=True))
    items = read(value)
    return value if all(map(is_, items, value)) else type(value)(items)


def _evaluated_lazy(value: Any, depth: int, known: dict[int, Any]) -> Any:
    try:
        if isinstance(value, Promise):
            return str(value)
        # The wrapped object takes the place of one that only looks like it.
        wrapped = value.__reduce__()[1][0]
    except Exception as error:
        return LazyValueError(f"{class_of(error)}: {words_of(error)}")
    if depth >= _DEEPEST:
        return LazyValueError("it contains itself")
    return _evaluated(wrapped, depth + 1, known)


def declarations(registrations: object, *, time_zone: str | None = None) -> list[Declaration]:
    """Understand registrations, from settings or handed to ``initialize``.

    Args:
        registrations: a list of 4-tuples and dicts; callables of any kind are accepted.
        time_zone: IANA name for 4-tuples; ``settings.TIME_ZONE`` unless given.

    Raises:
        DeclarativeCronError: the first thing that is wrong, by the kind that 001
            Registration Validation Errors names for it. A note on the error says where it
            is and how to mend it.
    """
    problems, zone = Problems(stop_at_first=True), partial(project_zone, time_zone)
    given = evaluated(registrations)
    return [d.declaration for d in read(given, Targets(), zone, calendars(), problems)]


def posted(
    entry: Mapping[str, Any],
) -> tuple[Declaration | None, list[Problem]]:
    """Understand one task that is registered over HTTP, with everything that is wrong.

    Args:
        entry: in the form of an item of ``SCHEDULED_TASKS``, JSON-native.
    """
    return _one(entry, Types(external=options().EXTERNAL_WORKERS), stop_at_first=False)


def stored(entry: object, *, is_external: bool = False) -> Declaration:
    """Understand the task that a row keeps, as it was posted.

    Args:
        entry: as it was posted.
        is_external: it was taken for one of external workers.

    Raises:
        DeclarativeCronError: this process does not have its type, or the text is damaged.
    """
    declaration, _ = _one(entry, Types(external=is_external), stop_at_first=True)
    if declaration is None:
        raise RegistrationShapeError(0, entry)
    return declaration


def _one(
    entry: object, types: Types, *, stop_at_first: bool
) -> tuple[Declaration | None, list[Problem]]:
    problems = Problems(stop_at_first=stop_at_first)
    form: Any = {"source": "cron_job", "withheld": FORBIDDEN}
    found = list(read([entry], types, project_zone, calendars(), problems, **form))
    if not found or not isinstance(entry, dict):
        return None, problems.found
    return replace(found[0].declaration, origin="http", entry=entry), problems.found


def problems(registrations: object) -> list[Problem]:
    """Give everything that is wrong with registrations, as system checks report it.

    Args:
        registrations: as written in settings; callables must be importable by name.
    """
    return survey(registrations)[1]


def survey(registrations: object) -> tuple[list[Declared], list[Problem]]:
    """Give what is acceptable and what is wrong, without raising.

    Args:
        registrations: as written in settings; callables must be importable by name.
    """
    problems, targets = Problems(stop_at_first=False), Targets(importable_only=True)
    source = "SCHEDULED_TASKS"
    given = evaluated(registrations)
    declared = read(given, targets, project_zone, calendars(), problems, source=source)
    return list(declared), problems.found


def project_zone(name: str | None = None) -> ZoneInfo:
    """Give the zone of the project's local times.

    A name without a slash, such as ``GMT``, is taken too: Django accepted it. UTC where
    ``settings.TIME_ZONE`` is ``None``.

    Args:
        name: instead of ``settings.TIME_ZONE``.

    Raises:
        UnresolvableError: the installed time zone database does not have it.
    """
    name = name or settings.TIME_ZONE
    try:
        return ZoneInfo("UTC" if name is None else name)
    except (KeyError, OSError, TypeError, ValueError):
        reason = f"TIME_ZONE is {name!r}, which is no IANA time zone"
        hint = 'Write a name such as TIME_ZONE = "Europe/Berlin".'
        raise UnresolvableError(Check.ZONE, reason, hint) from None


def project_zone_is_set() -> bool:
    """Tell whether ``settings.TIME_ZONE`` names a zone."""
    return settings.TIME_ZONE is not None


def job_keys() -> tuple[bytes, ...]:
    """Return the keys of the names of jobs: the one in use, then those of older secret keys."""
    return tuple(map(_job_key, (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)))


@lru_cache(maxsize=8)
def _job_key(secret: str | bytes) -> bytes:
    return salted_hmac("django_declarative_cron.jobs", "", secret, algorithm="sha256").digest()


def foreign(name: str, default: Any = None) -> Any:
    """Give a setting of another scheduler.

    Args:
        name: of the setting.
        default: where the project has none.
    """
    return getattr(settings, name, default)


def _given_options() -> Any:
    return evaluated(getattr(settings, "DECLARATIVE_CRON", {}))


def options() -> Options:
    """Give the options of ``settings.DECLARATIVE_CRON``, defaults filled in.

    Raises:
        ImproperlyConfigured: an option is unknown or its value is refused.
    """
    found, wrong = read_options(_given_options())
    for problem in wrong:
        if problem.check.level == "E":
            raise ImproperlyConfigured(f"{problem.place} {problem.message}\n{problem.hint}")
    return found


def option_problems() -> list[Problem]:
    """Give everything that is wrong with ``settings.DECLARATIVE_CRON``."""
    return read_options(_given_options())[1]


def lenient_options() -> Options:
    """Give the options, with the default of each that is refused."""
    return read_options(_given_options())[0]


def calendars() -> Calendars:
    """Give the calendars that tasks may name; those that are refused are left out."""
    return Calendars(lenient_options().CALENDARS)


def external_workers() -> bool:
    """Tell whether workers outside may have types of their own; each pass asks for that alone."""
    given = _given_options()
    return isinstance(given, dict) and given.get("EXTERNAL_WORKERS") is True


def event_sink() -> Sink | None:
    """Give who is told of events; each pass asks, so nothing else is understood for it.

    Raises:
        ImproperlyConfigured: one is named, and an option is unknown or its value is refused.
    """
    given = _given_options()
    if isinstance(given, dict) and given.get("EVENT_SINK") is None:
        return None
    return options().EVENT_SINK


def posts_events() -> bool:
    """Tell whether ``EVENT_SINK`` names a receiver that can be understood."""
    return lenient_options().EVENT_SINK is not None
