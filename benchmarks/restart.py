"""The start of a scheduler whose tasks are all known and unchanged, and the first one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta

from .figures import Figure, Row
from .measuring import (
    NOTHING,
    cost,
    crons,
    forget,
    median_cost,
    names,
    nothing,
    resident,
)
from .processes import Function, Project, attempted, project

SIZES = (1000, 10_000, 100_000)
FIRST, RESTART, MEMORY = "first start", "restart", "memory"


def what(kind: str, size: int) -> str:
    """Return the name of a figure."""
    return f"{kind}, {size:,} tasks"


FIGURES = (
    *(Figure(what(FIRST, size), "ms") for size in SIZES),
    Figure(what(RESTART, 1000), "ms", target=35, statements=6),
    Figure(what(RESTART, 10_000), "ms", target=250, statements=6),
    Figure(what(RESTART, 100_000), "ms", target=2500, statements=6),
    *(Figure(what(MEMORY, size), "MB") for size in SIZES[:-1]),
    Figure(what(MEMORY, SIZES[-1]), "MB", target=250),
)


def measure(small: bool = False) -> list[Row]:
    """Measure everybody with 1,000 tasks, and the product with more."""
    rows = []
    for contender, start in CONTENDERS.items():
        rows += restarted(contender, start, SIZES[0], declared=12 if small else 0)
    for size in SIZES[1:]:
        rows += restarted("product", product, size, declared=24 if small else 0)
    return rows


def restarted(contender: str, start: Function, size: int, declared: int = 0) -> list[Row]:
    """Start a contender in one process, and again in another one, which has nothing in memory.

    Args:
        contender: its id.
        start: its function.
        size: number of tasks, as the figures name it.
        declared: the number that is declared, where that is another one.
    """

    def work() -> list[Row]:
        with project(contender) as made:
            return [*_run(made, again=False), *_run(made, again=True)]

    def _run(made: Project, *, again: bool) -> list[Row]:
        arguments = {"size": size, "declared": declared or size, "again": again}
        return made.run(start, patience=600, **arguments)

    return attempted(contender, work)


def _rows(
    size: int,
    start: Callable[[], object],
    again: bool,
    stop: Callable[[], object] = lambda: None,
    note: str = "",
) -> list[Row]:
    """Return the cost of the first start, or the median cost of restarts, and the memory."""
    if not again:
        found = cost(start)
        stop()
        return [Row(what(FIRST, size), found.milliseconds, found.statements, note)]
    start()
    memory = resident()

    def leave() -> None:
        stop()
        forget()

    found = median_cost(start, 3, before=leave, seconds=10.0)
    stop()
    return [
        Row(what(RESTART, size), found.milliseconds, found.statements, note),
        Row(what(MEMORY, size), memory),
    ]


def product(size: int, declared: int, again: bool) -> list[Row]:
    """Initialise a scheduler that has no loop."""
    from django_declarative_cron import Scheduler

    scheduler, delay = Scheduler(background=False), timedelta(minutes=5)

    def start() -> None:
        scheduler.initialize(
            [
                (name, cron, nothing, delay)
                for name, cron in zip(names(declared), crons(declared), strict=True)
            ]
        )

    return _rows(size, start, again, scheduler.stop)


def apscheduler(size: int, declared: int, again: bool) -> list[Row]:
    """Start a scheduler and add every job in place of the one with the same id."""
    from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
    from apscheduler.schedulers.background import BackgroundScheduler
    from apscheduler.triggers.cron import CronTrigger

    scheduler = BackgroundScheduler(timezone=UTC)

    def start() -> None:
        nonlocal scheduler
        store = SQLAlchemyJobStore(url="postgresql+psycopg://")
        scheduler = BackgroundScheduler(jobstores={"default": store}, timezone=UTC)
        scheduler.start(paused=True)
        for name, cron in zip(names(declared), crons(declared), strict=True):
            trigger = CronTrigger.from_crontab(cron, timezone=UTC)
            scheduler.add_job(nothing, trigger, id=name, replace_existing=True)

    return _rows(size, start, again, lambda: scheduler.shutdown())


def celery_beat(size: int, declared: int, again: bool) -> list[Row]:
    """Make the database scheduler of a ``beat_schedule``, and let it read its schedule."""
    from celery import Celery
    from celery.schedules import crontab
    from django_celery_beat.schedulers import DatabaseScheduler

    def start() -> None:
        app = Celery("bench", broker="memory://", set_as_current=True)
        app.conf.timezone = "UTC"
        app.conf.beat_schedule = {
            name: {"task": "nothing", "schedule": crontab.from_string(cron)}
            for name, cron in zip(names(declared), crons(declared), strict=True)
        }
        assert DatabaseScheduler(app=app).schedule

    return _rows(size, start, again)


def django_q2(size: int, declared: int, again: bool) -> list[Row]:
    """Update or create every schedule by its name, as projects do on deployment."""
    from django_q.models import Schedule

    def start() -> None:
        for name, cron in zip(names(declared), crons(declared), strict=True):
            values = {"func": NOTHING, "schedule_type": Schedule.CRON, "cron": cron}
            Schedule.objects.update_or_create(name=name, defaults=values)

    note = "it has no declared set; projects call `update_or_create` for every schedule"
    return _rows(size, start, again, note=note)


def procrastinate(size: int, declared: int, again: bool) -> list[Row]:
    """Register every task and look for those that are due."""
    import asyncio
    import time

    from procrastinate import App, PsycopgConnector
    from procrastinate.periodic import PeriodicDeferrer

    async def open_and_look(app: App) -> None:
        async with app.open_async():
            if not await app.check_connection_async():
                await app.schema_manager.apply_schema_async()
            deferrer = PeriodicDeferrer(registry=app.periodic_registry)
            await deferrer.defer_jobs(deferrer.get_previous_tasks(at=time.time()))

    def start() -> None:
        app = App(connector=PsycopgConnector())
        task = app.task(name="nothing")(nothing)
        for name, cron in zip(names(declared), crons(declared), strict=True):
            app.periodic(cron=cron, periodic_id=name)(task)
        asyncio.run(open_and_look(app))

    note = "it stores no schedule, so it compares nothing"
    return _rows(size, start, again, note=note)


CONTENDERS: dict[str, Function] = {
    "product": product,
    "apscheduler": apscheduler,
    "celery_beat": celery_beat,
    "django_q2": django_q2,
    "procrastinate": procrastinate,
}
