"""The only reader of settings: ``SCHEDULED_TASKS`` and ``DECLARATIVE_CRON``.

Nothing is cached between calls, so a changed setting takes effect at the next call. The options
and their defaults are the fields of ``core.options.Options``.
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
from .callables import Targets, Types
from .core.declarations.declaration import Declaration
from .core.declarations.item import Declared
from .core.declarations.problems import Check, Problem, Problems, UnresolvableError
from .core.declarations.registration import read
from .core.http_api import FORBIDDEN
from .core.options import Options, read_options
from .exceptions import RegistrationShapeError, class_of, words_of

__all__ = ["Options", "declarations", "options", "problems", "registrations"]

_DEEPEST = 64


def registrations() -> object:
    """Return ``settings.SCHEDULED_TASKS``, an empty list if it is not set."""
    return getattr(settings, "SCHEDULED_TASKS", [])


class LazyValueError(Exception):
    """A lazy value of the settings that raised; readers refuse it at its place."""


def evaluated(value: Any) -> Any:
    """Return a value of the settings with lazy values in it evaluated; the same where none is."""
    return _evaluated(value, 0, {})


def _evaluated(value: Any, depth: int, known: dict[int, Any]) -> Any:
    kind = type(value)
    if issubclass(kind, Promise | LazyObject):
        return _evaluated_lazy(value, depth, known)
    if depth >= _DEEPEST or kind not in (dict, list, tuple):
        return value
    if id(value) not in known:
        # A value that contains itself stays as it is there; a shared value is read once.
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
        # The wrapped object replaces its proxy.
        wrapped = value.__reduce__()[1][0]
    except Exception as error:
        return LazyValueError(f"{class_of(error)}: {words_of(error)}")
    if depth >= _DEEPEST:
        return LazyValueError("it contains itself")
    return _evaluated(wrapped, depth + 1, known)


def declarations(registrations: object, *, time_zone: str | None = None) -> list[Declaration]:
    """Return the declarations of registrations, from settings or an argument of ``initialize``.

    Raises:
        DeclarativeCronError: the first mistake, by the kind that 001 Registration
            Validation Errors names for it. A note on the error has the place and the fix.
    """
    problems, zone = Problems(stop_at_first=True), partial(project_zone, time_zone)
    given = evaluated(registrations)
    return [d.declaration for d in read(given, Targets(), zone, calendars(), problems)]


def posted(entry: Mapping[str, Any]) -> tuple[Declaration | None, list[Problem]]:
    """Return the declaration of a task that is registered over HTTP, and all mistakes."""
    return _one(entry, Types(external=options().EXTERNAL_WORKERS), stop_at_first=False)


def stored(entry: object, *, is_external: bool = False) -> Declaration:
    """Return the declaration of a posted task from its row.

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
    """Return all mistakes in registrations; callables must be importable by name."""
    return survey(registrations)[1]


def survey(registrations: object) -> tuple[list[Declared], list[Problem]]:
    """Return the acceptable declarations and all mistakes, without raising."""
    problems, targets = Problems(stop_at_first=False), Targets(importable_only=True)
    source = "SCHEDULED_TASKS"
    given = evaluated(registrations)
    declared = read(given, targets, project_zone, calendars(), problems, source=source)
    return list(declared), problems.found


def project_zone(name: str | None = None) -> ZoneInfo:
    """Return the zone of the project's local times.

    A name without a slash, such as ``GMT``, is accepted, because Django accepts it. If
    ``settings.TIME_ZONE`` is ``None``, the zone is UTC.

    Raises:
        UnresolvableError: the installed time zone database does not have it.
    """
    name = name or settings.TIME_ZONE
    try:
        return ZoneInfo("UTC" if name is None else name)
    except (KeyError, OSError, TypeError, ValueError):
        reason = f"TIME_ZONE is {name!r}, which is not an IANA time zone"
        hint = 'Write a name such as TIME_ZONE = "Europe/Berlin".'
        raise UnresolvableError(Check.ZONE, reason, hint) from None


def project_zone_is_set() -> bool:
    """Return whether ``settings.TIME_ZONE`` names a zone."""
    return settings.TIME_ZONE is not None


def job_keys() -> tuple[bytes, ...]:
    """Return the keys that sign names of jobs: the current one, then those of older secrets."""
    return tuple(map(_job_key, (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)))


@lru_cache(maxsize=8)
def _job_key(secret: str | bytes) -> bytes:
    return salted_hmac("django_declarative_cron.jobs", "", secret, algorithm="sha256").digest()


def foreign(name: str, default: Any = None) -> Any:
    """Return a setting of another app, or a default."""
    return getattr(settings, name, default)


def _given_options() -> Any:
    return evaluated(getattr(settings, "DECLARATIVE_CRON", {}))


def options() -> Options:
    """Return the options of ``settings.DECLARATIVE_CRON``, with defaults for the others.

    Raises:
        ImproperlyConfigured: an option is unknown or its value is refused.
    """
    found, wrong = read_options(_given_options())
    for problem in wrong:
        if problem.check.level == "E":
            raise ImproperlyConfigured(f"{problem.place} {problem.message}\n{problem.hint}")
    return found


def option_problems() -> list[Problem]:
    """Return all mistakes in ``settings.DECLARATIVE_CRON``."""
    return read_options(_given_options())[1]


def lenient_options() -> Options:
    """Return the options, with the defaults of those that are refused."""
    return read_options(_given_options())[0]


def calendars() -> Calendars:
    """Return the calendars that tasks may name, except refused ones."""
    return Calendars(lenient_options().CALENDARS)


def posts_events() -> bool:
    """Return whether ``EVENT_SINK`` has a valid receiver."""
    return lenient_options().EVENT_SINK is not None
