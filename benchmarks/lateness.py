"""The time between an occurrence and its call: ten of 1,000 tasks are due at each occurrence."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from statistics import median

from .figures import Figure, Row
from .measuring import EVERY_MINUTE, NEVER, due_crons, names
from .processes import Function, measured

MEDIAN, WORST = "lateness, median", "lateness, worst"
FIGURES = (
    Figure(MEDIAN, "ms", target=10),
    Figure(WORST, "ms", target=50),
)
DUE = 10
STEP = 5
"""Seconds between occurrences, for contenders whose schedules have seconds."""

_calls: list[float] = []


def note(*args: object, **kwargs: object) -> None:
    """Write down the time of a call."""
    _calls.append(time.time())


NOTE = f"{__name__}.note"


def measure(small: bool = False) -> list[Row]:
    """Measure everybody, one after the other."""
    size, instants = (DUE, 1) if small else (1000, 6)
    chosen = list(CONTENDERS.items())[: 2 if small else None]  # The others wait for a minute.
    return [
        row
        for contender, work in chosen
        for row in measured(contender, work, patience=240, size=size, instants=instants)
    ]


def _rows(
    calls: list[float], first: float, instants: int = 1, step: int = 60, note: str = ""
) -> list[Row]:
    """Return how late calls were, of which each instant has the same number.

    Args:
        calls: when they began.
        first: the first instant.
        instants: number of instants.
        step: seconds between them.
        note: a limit of the comparison.
    """
    began = sorted(each for each in calls if each >= first)
    if len(began) != DUE * instants:
        return [Row(note=f"called {len(began)} of {DUE * instants} runs in time")]
    late = [(each - first - n // DUE * step) * 1000 for n, each in enumerate(began)]
    return [Row(MEDIAN, median(late), note=note), Row(WORST, max(late), note=note)]


def _seen(instants: int) -> list[Row]:
    """Wait for some instants, and return how late the calls at them were."""
    first = (time.time() // STEP + 2) * STEP
    time.sleep(first + STEP * instants - 0.5 - time.time())
    return _rows(_calls, first, instants, STEP)


def _next_minute() -> float:
    """Return the next minute that is at least ten seconds away."""
    return ((time.time() + 10) // 60 + 1) * 60


def product(size: int, instants: int) -> list[Row]:
    """Run one scheduler with default options."""
    from django_declarative_cron import Scheduler

    crons = [f"*/{STEP} {EVERY_MINUTE}"] * DUE + [NEVER] * (size - DUE)
    scheduler = Scheduler()
    scheduler.initialize(
        [
            {"name": name, "cron": cron, "callback": NOTE}
            for name, cron in zip(names(size), crons, strict=True)
        ]
    )
    rows = _seen(instants)
    scheduler.stop()
    return rows


def apscheduler(size: int, instants: int) -> list[Row]:
    """Run a background scheduler with its store in the database."""
    from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
    from apscheduler.schedulers.background import BackgroundScheduler
    from apscheduler.triggers.cron import CronTrigger

    store = SQLAlchemyJobStore(url="postgresql+psycopg://")
    scheduler = BackgroundScheduler(jobstores={"default": store}, timezone=UTC)
    scheduler.start(paused=True)
    never = CronTrigger.from_crontab(NEVER, timezone=UTC)
    often = CronTrigger(second=f"*/{STEP}", timezone=UTC)
    for n, name in enumerate(names(size)):
        scheduler.add_job(note, often if n < DUE else never, id=name, misfire_grace_time=60)
    _calls.clear()
    scheduler.resume()
    rows = _seen(instants)
    scheduler.shutdown()
    return rows


def celery_beat(size: int, instants: int) -> list[Row]:
    """Run beat for one minute; its messages are noted."""
    from celery import Celery
    from celery.beat import Service
    from celery.signals import after_task_publish
    from django.utils import timezone
    from django_celery_beat.models import CrontabSchedule, PeriodicTask
    from django_celery_beat.schedulers import DatabaseScheduler

    app = Celery("bench", broker="memory://")
    app.conf.timezone = "UTC"
    always = CrontabSchedule.objects.create(minute="*", hour="*")
    # Beat loads only tasks whose hour is near, so these have every hour of that day.
    never = CrontabSchedule.objects.create(
        minute="0", hour="*", day_of_month="29", month_of_year="2"
    )
    PeriodicTask.objects.bulk_create(
        PeriodicTask(
            name=name,
            task="nothing",
            crontab=always if n < DUE else never,
            last_run_at=timezone.now(),
        )
        for n, name in enumerate(names(size))
    )
    after_task_publish.connect(note)
    service = Service(app, scheduler_cls=DatabaseScheduler)
    threading.Thread(target=service.start, daemon=True).start()
    minute = _next_minute()
    _wait(minute + 15, minute)
    service.stop(wait=True)
    return _rows(
        _calls, minute, note="a due run is handed over to a worker; its call is not in the time"
    )


def django_q2(size: int, instants: int) -> list[Row]:
    """Run a cluster with two workers for one minute."""
    from django.db import connection
    from django_q.cluster import Cluster
    from django_q.models import Schedule, Success

    minute = _next_minute()
    # Without `next_run` a new schedule is due immediately.
    due, later = datetime.fromtimestamp(minute, UTC), datetime(2999, 1, 1, tzinfo=UTC)
    Schedule.objects.bulk_create(
        Schedule(
            name=name,
            func=NOTE,
            schedule_type="C",
            cron=EVERY_MINUTE if n < DUE else NEVER,
            next_run=due if n < DUE else later,
        )
        for n, name in enumerate(names(size))
    )
    connection.close()
    cluster = Cluster()
    cluster.start()
    time.sleep(max(0.0, minute - time.time()))
    end = minute + 45
    while Success.objects.count() < DUE and time.time() < end:
        time.sleep(0.5)
    started = Success.objects.values_list("started", flat=True)
    calls = [each.timestamp() for each in started]
    cluster.stop()
    return _rows(calls, minute, note="it looks for due schedules every 30 s")


def procrastinate(size: int, instants: int) -> list[Row]:
    """Run a worker with its periodic deferrer for one minute."""
    import asyncio

    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector())
    task = app.task(name="note")(note)
    for name, cron in zip(names(size), due_crons(size, DUE), strict=True):
        app.periodic(cron=cron, periodic_id=name)(task)

    async def work() -> float:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            worker = asyncio.ensure_future(
                app.run_worker_async(concurrency=10, install_signal_handlers=False)
            )
            minute = _next_minute()
            await asyncio.to_thread(_wait, minute + 30, minute)
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
            return minute

    minute = asyncio.run(work())
    return _rows(_calls, minute)


def _wait(end: float, minute: float) -> None:
    """Wait until every due call of a minute was noted."""
    time.sleep(max(0.0, minute - time.time()))
    while sum(each >= minute for each in _calls) < DUE and time.time() < end:
        time.sleep(0.2)


CONTENDERS: dict[str, Function] = {
    "product": product,
    "apscheduler": apscheduler,
    "celery_beat": celery_beat,
    "django_q2": django_q2,
    "procrastinate": procrastinate,
}
