"""System checks of declarations, options and databases; ``Check`` lists their ids.

Only the checks of databases query one, for ``migrate`` and ``check --database``. Checks for
production run for ``check --deploy`` only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core import checks
from django.core.checks import CheckMessage, register
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from . import conf, django_tasks, handlers
from .calendars import flaw_of_file, is_file
from .core.declarations.item import Declared
from .core.declarations.problems import Check, Problem, UnresolvableError
from .core.declarations.runners import DJANGO_TASKS, PROCESS
from .core.lint import advise, sub_minute
from .core.monitor import Monitoring
from .exceptions import CalendarError

TAG = "declarative_cron"

_LEVELS = {"E": checks.Error, "W": checks.Warning, "I": checks.Info}


@register(TAG)
def check_scheduled_tasks(**kwargs: Any) -> list[CheckMessage]:
    """Report mistakes and surprises in ``SCHEDULED_TASKS``."""
    declared, problems = conf.survey(conf.registrations())
    found = [*_advice(declared), *_runners(declared), *_monitored(declared)]
    return _messages([*problems, *found])


@register(TAG)
def check_handlers(**kwargs: Any) -> list[CheckMessage]:
    """Report mistakes in functions that are registered for types."""
    return _messages(handlers.problems())


@register(TAG)
def check_options(**kwargs: Any) -> list[CheckMessage]:
    """Report mistakes in ``DECLARATIVE_CRON``, and settings that do not fit it."""
    lacking = (*_missing_libraries(), *_silent_calendars(), *_small_pools())
    return _messages([*conf.option_problems(), *lacking, *_tenant_tables()])


@register(checks.Tags.database, TAG)
def check_databases(databases: Collection[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Report features that schedulers need and the database lacks."""
    ours = router.db_for_write(apps.get_model("django_declarative_cron", "ScheduledTask"))
    if ours not in (databases or ()):
        return []
    return _messages(_lacks(connections[ours], f"DATABASES[{ours!r}]"))


# Without our own tag, because Django would run it for that tag although no database is named.
@register(checks.Tags.database)
def check_pace(databases: Collection[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Report tasks whose runs take longer than their interval."""
    from .runtime.clock import system_clock
    from .store.overview import too_slow

    ours = router.db_for_write(apps.get_model("django_declarative_cron", "ScheduledTask"))
    if ours not in (databases or ()):
        return []
    try:
        deployment = conf.options().DEPLOYMENT
    except ImproperlyConfigured:
        return []  # ``check_options`` reports it.
    return _messages(too_slow(ours, deployment, system_clock.now()))


@register(TAG, deploy=True)
def check_deployment(**kwargs: Any) -> list[CheckMessage]:
    """Report schedules that are expensive in production."""
    from .runtime.clock import system_clock

    try:
        kept = conf.options().HISTORY_MAX_RUNS
    except ImproperlyConfigured:
        return []  # ``check_options`` reports it.
    declared, _ = conf.survey(conf.registrations())
    return _messages(sub_minute(declared, system_clock.now(), kept))


_HTTP = ("urllib3", "django-declarative-cron[events]")
_SIGNING = ("standardwebhooks", "django-declarative-cron[events]")


def _missing_libraries() -> Iterator[Problem]:
    found = conf.lenient_options()
    monitoring, sink = found.MONITOR or Monitoring(), found.EVENT_SINK
    needs = {
        ("EVENT_SINK", *_HTTP): sink is not None,
        ("EVENT_SINK", *_SIGNING): sink is not None and bool(sink.secrets),
        ("MONITOR", "sentry_sdk", "sentry-sdk"): monitoring.sentry,
        ("MONITOR", *_HTTP): monitoring.needs_http,
        ("NOTIFY", *_HTTP): any(channel.url for channel in found.NOTIFY),
        ("NOTIFY", *_SIGNING): any(channel.secrets for channel in found.NOTIFY),
    }
    for (option, module, package), is_needed in needs.items():
        if is_needed and find_spec(module) is None:
            yield Problem(
                check=Check.SINK_LIBRARY if option == "EVENT_SINK" else Check.WATCH_LIBRARY,
                place=f"DECLARATIVE_CRON[{option!r}]",
                message=f"needs {module}, which is not installed",
                hint=f'Install "{package}".',
            )


def _monitored(declared: Iterable[Declared]) -> Iterator[Problem]:
    """Report tasks with a monitor that has no destination."""
    common = conf.lenient_options().MONITOR or Monitoring()
    for each in declared:
        own = each.declaration.monitor
        if own is None or not own.is_wanted:
            continue
        ping = common.ping if own.ping is None else own.ping
        if not (ping or (common.sentry if own.sentry is None else own.sentry)):
            yield each.problem(
                Check.MONITORED_BY_NOBODY,
                "has `monitor`, and nothing says where its check-ins go",
                'Set DECLARATIVE_CRON["MONITOR"], or give the task a `ping` of its own.',
            )


def _silent_calendars() -> Iterator[Problem]:
    from .runtime.clock import system_clock

    calendars, today = conf.calendars(), system_clock.now().date()
    for name, source in calendars.sources.items():
        if is_file(source) and (flaw := _flaw_of_file(str(source))) is not None:
            yield Problem(
                check=Check.CALENDAR_FILE,
                place=f"DECLARATIVE_CRON['CALENDARS'][{name!r}]",
                message=flaw,
                hint="Export a calendar of whole days, such as public holidays.",
            )
            continue
        try:
            calendars.exclusion([name]).calendar_of(today)
        except CalendarError as error:
            yield Problem(
                check=Check.SILENT_CALENDAR,
                place=f"DECLARATIVE_CRON['CALENDARS'][{name!r}]",
                message=error.details["reason"],
                hint="Until it answers, tasks that it may exclude are set aside when they are due.",
            )


def _flaw_of_file(path: str) -> str | None:
    try:
        return flaw_of_file(Path(path))
    except OSError:
        return None  # The calendar does not answer either, which is a warning of its own.


def _small_pools() -> Iterator[Problem]:
    """Report connection pools that are smaller than ``WORKERS``."""
    workers = conf.lenient_options().WORKERS
    for alias, database in connections.settings.items():
        pool = database.get("OPTIONS", {}).get("pool")
        size = _size_of_pool(pool if isinstance(pool, dict) else {})
        if pool and size < workers:
            yield Problem(
                check=Check.SMALL_POOL,
                place=f"DATABASES[{alias!r}]['OPTIONS']['pool']",
                message=f"has {size} connections, and {workers} callbacks may run at a time: "
                "those that wait 30 s for a connection fail",
                hint=f'Write "pool": {{"max_size": {workers}}}, or more where `async def` '
                "callbacks use the database too, or lower WORKERS.",
            )


def _tenant_tables() -> Iterator[Problem]:
    """Report tables in each schema of django-tenants; schedulers use those in ``public``."""
    app = apps.get_app_config("django_declarative_cron")
    names = {app.name, f"{type(app).__module__}.{type(app).__qualname__}"}
    if names.intersection(conf.foreign("TENANT_APPS", ())):
        yield Problem(
            check=Check.IN_EACH_TENANT,
            place="TENANT_APPS",
            message=f"has {app.name!r}: a run that leaves a tenant set on its connection would "
            "look for its row in that tenant's tables, and an `atomic` run fails there",
            hint="Put the app into SHARED_APPS only: one schedule serves all tenants.",
        )


def _size_of_pool(options: dict[str, Any]) -> int:
    """Return the most connections that psycopg's pool opens; 4 unless set."""
    return int(options.get("max_size") or options.get("min_size", 4))


def _lacks(connection: BaseDatabaseWrapper, place: str) -> Iterator[Problem]:
    features = connection.features
    # On other databases Django would create a table to find out, and all have transactions.
    if connection.vendor == "mysql" and not features.supports_transactions:
        yield Problem(
            check=Check.NO_TRANSACTIONS,
            place=place,
            message="keeps no transactions, so runs would be lost or started twice",
            hint="On MySQL and MariaDB let the default storage engine be InnoDB.",
        )
    if features.has_select_for_update and not features.has_select_for_update_skip_locked:
        yield Problem(
            check=Check.HELD_ROWS,
            place=place,
            message="cannot leave out rows that somebody holds: one of them delays every task",
            hint="Take MariaDB 10.6 or newer, MySQL 8 or newer, or PostgreSQL.",
        )


def _advice(declared: list[Declared]) -> Iterator[Problem]:
    from .runtime.clock import system_clock

    if declared and not conf.project_zone_is_set():
        yield Problem(
            check=Check.ZONE_UNSET,
            place="TIME_ZONE",
            message="is None, so tasks that name no time zone run in UTC",
            hint='Write TIME_ZONE = "UTC", or the zone that is meant.',
        )
    try:
        project_zone = conf.project_zone()
    except UnresolvableError:
        project_zone = None
    yield from advise(declared, system_clock.now(), project_zone)


def _runners(declared: list[Declared]) -> Iterator[Problem]:
    """Report runners that this project or this system does not have."""
    from .runtime.forking import can_fork

    for each in declared:
        runner = each.declaration.runner
        if runner == DJANGO_TASKS:
            yield from _engine(each)
        elif runner == PROCESS and not can_fork():
            yield each.problem(
                Check.NO_FORK,
                "its runs are called in processes, and this system cannot fork: here they fail",
                'Write "runner": "thread", or run the scheduler on Linux or another Unix.',
            )


def _engine(each: Declared) -> Iterator[Problem]:
    declaration = each.declaration
    asked = django_tasks.asked_of_engine(declaration.target.function, declaration.options)
    if (flaw := django_tasks.flaw(asked)) is not None:
        yield each.problem(Check.ENGINE, *flaw)
    elif (says := django_tasks.stand_in(asked)) is not None:
        hint = "In production let TASKS name a backend with workers."
        yield each.problem(Check.NO_ENGINE, says, hint)


def _messages(problems: Iterable[Problem]) -> list[CheckMessage]:
    return [
        _LEVELS[problem.check.level](
            problem.message, hint=_hint(problem), obj=problem.place, id=str(problem.check)
        )
        for problem in problems
    ]


def _hint(problem: Problem) -> str | None:
    page = problem.check.page
    more = f"More in {page}." if page else ""
    return f"{problem.hint} {more}".strip() or None
