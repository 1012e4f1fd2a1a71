"""A pass of the scheduler: with nothing due, and with many tasks due at the same instant."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from .figures import Figure, Row
from .measuring import (
    NEVER,
    NOTHING,
    Cost,
    Stopwatch,
    due_crons,
    idle_cost,
    median_cost,
    median_of,
    names,
    nothing,
    wait_until,
)
from .processes import Function, measured

FEW, MANY, MORE = 10, 1000, 10_000
IDLE = "pass, none of 1,000 due"
FEW_DUE = "pass, 10 of 1,000 due"
MANY_DUE = "pass, 1,000 of 1,000 due"
MANY_DUE_OF_MORE = "pass, 1,000 of 10,000 due"
STARTED = "the same, until all are started"
FIGURES = (
    Figure(IDLE, "ms", target=2, statements=1),
    Figure(FEW_DUE, "ms", target=25),
    Figure(MANY_DUE, "ms", target=500),
    Figure(MANY_DUE_OF_MORE, "ms", target=500),
    Figure(STARTED, "ms", statements=12),
)
HANDED_OVER = "a due run is handed over to a worker; calling and recording it is not in the time"


def measure(small: bool = False) -> list[Row]:
    """Measure the product, then each peer."""
    many, more = (20, 30) if small else (MANY, MORE)
    rows = []
    for contender in CONTENDERS:
        rows += _measured(contender, FEW_DUE, many, FEW)
        rows += _measured(contender, MANY_DUE, many, many)
    return rows + _measured("product", MANY_DUE_OF_MORE, more, many)


def _measured(contender: str, what: str, size: int, due: int) -> list[Row]:
    return measured(contender, CONTENDERS[contender], what=what, size=size, due=due)


def _rows(
    what: str,
    idle: Callable[[], object],
    due: Callable[[], object],
    make_due: Callable[[], object],
    is_right: Callable[[], bool],
    note: str = "",
) -> list[Row]:
    """Return the rows of one contender with one number of due tasks."""
    rows = []
    if what == FEW_DUE:
        rows.append(_row(IDLE, idle_cost(idle)))
    found = median_cost(due, 5, before=make_due)
    if not is_right():
        return [*rows, Row(what, note="did not start every due task")]
    return [*rows, _row(what, found, note)]


def _row(what: str, found: Cost, note: str = "") -> Row:
    return Row(what, found.milliseconds, found.statements, note)


def product(what: str, size: int, due: int) -> list[Row]:
    """Measure until every run is started, called and recorded."""
    from django_declarative_cron import signals
    from django_declarative_cron.models import TaskRun
    from django_declarative_cron.testing import Simulation

    simulation = Simulation(start="2024-01-01T10:00:30Z")
    delay = timedelta(minutes=5)
    simulation.initialize(
        [
            (name, cron, nothing, delay)
            for name, cron in zip(names(size), due_crons(size, due), strict=True)
        ]
    )
    minute = datetime(2024, 1, 1, 10, 0, tzinfo=UTC)

    def idle() -> None:
        simulation.advance_to(simulation.now + timedelta(milliseconds=10))

    def make_due() -> None:
        nonlocal minute
        minute += timedelta(minutes=1)
        # A loop that has nothing to do looks every second.
        simulation.advance_to(minute - timedelta(seconds=1))

    def is_right() -> bool:
        recorded = TaskRun.objects.filter(scheduled_for=minute, outcome="succeeded")
        return recorded.count() == due

    def pass_() -> None:
        watch.restart()
        simulation.advance_to(minute)

    def note_started(**_: object) -> None:
        started.append(watch.read())

    watch, started = Stopwatch(), list[Cost]()
    signals.poll_completed.connect(note_started)
    rows = _rows(what, idle, pass_, make_due, is_right)
    return [*rows, _row(STARTED, median_of(started))] if what == MANY_DUE_OF_MORE else rows


def apscheduler(what: str, size: int, due: int) -> list[Row]:
    """Measure until every job is called; nothing of it is recorded."""
    from apscheduler.events import EVENT_JOB_EXECUTED, EVENT_JOB_MISSED, JobExecutionEvent
    from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
    from apscheduler.schedulers.background import BackgroundScheduler
    from apscheduler.schedulers.base import STATE_RUNNING
    from apscheduler.triggers.cron import CronTrigger

    store, over = SQLAlchemyJobStore(url="postgresql+psycopg://"), threading.Event()
    called, ended = 0, 0

    def end(event: JobExecutionEvent) -> None:
        nonlocal called, ended
        called += event.code == EVENT_JOB_EXECUTED
        ended += 1
        if ended == due:
            over.set()

    scheduler = BackgroundScheduler(jobstores={"default": store}, timezone=UTC)
    scheduler.start(paused=True)
    # Its own thread stays asleep: this function makes the passes.
    scheduler.state, scheduler.wakeup = STATE_RUNNING, lambda: None
    scheduler.add_listener(end, EVENT_JOB_EXECUTED | EVENT_JOB_MISSED)
    trigger = CronTrigger.from_crontab(NEVER, timezone=UTC)
    for name in names(size):
        # By default it drops a job that is late by more than a second.
        scheduler.add_job(nothing, trigger, id=name, misfire_grace_time=600)

    def make_due() -> None:
        nonlocal called, ended
        called = ended = 0
        over.clear()
        for name in names(due):
            job = scheduler.get_job(name)
            job._modify(next_run_time=datetime.now(UTC))
            store.update_job(job)

    def pass_() -> None:
        scheduler._process_jobs()
        over.wait(60)

    note = "jobs are called; it keeps no record of runs"
    return _rows(what, scheduler._process_jobs, pass_, make_due, lambda: called == due, note)


def celery_beat(what: str, size: int, due: int) -> list[Row]:
    """Measure ticks until nothing is due; a tick starts one task."""
    from celery import Celery
    from celery.signals import after_task_publish
    from django.utils import timezone
    from django_celery_beat.models import CrontabSchedule, PeriodicTask
    from django_celery_beat.schedulers import DatabaseScheduler

    app = Celery("bench", broker="memory://")
    app.conf.timezone = "UTC"
    # Beat loads only tasks whose hour is near, so these have every hour of yesterday.
    yesterday = timezone.now() - timedelta(days=1)
    schedule = CrontabSchedule.objects.create(
        minute="*", hour="*", day_of_month=str(yesterday.day), month_of_year=str(yesterday.month)
    )
    PeriodicTask.objects.bulk_create(
        PeriodicTask(name=name, task="nothing", crontab=schedule, last_run_at=timezone.now())
        for name in names(size)
    )
    scheduler, sent = DatabaseScheduler(app=app), 0

    def count(**_: object) -> None:
        nonlocal sent
        sent += 1

    after_task_publish.connect(count, weak=False)

    def ran(name: str, at: datetime) -> None:
        entry = scheduler.schedule[name]
        entry.last_run_at = entry.model.last_run_at = at

    def make_due() -> None:
        nonlocal sent
        sent = 0
        for position, name in enumerate(names(size)):
            ran(name, timezone.now() - timedelta(days=3 if position < due else 0))
        scheduler.populate_heap()

    def pass_() -> None:
        wait_until(lambda: scheduler.tick() > 0, 60, step=0)

    for name in names(size):
        ran(name, timezone.now())
    scheduler.populate_heap()
    scheduler.tick()
    return _rows(what, scheduler.tick, pass_, make_due, lambda: sent == due, HANDED_OVER)


def django_q2(what: str, size: int, due: int) -> list[Row]:
    """Measure a call of its scheduler."""
    from django.utils import timezone
    from django_q.brokers import get_broker
    from django_q.models import OrmQ, Schedule
    from django_q.scheduler import scheduler

    broker, later = get_broker(), timezone.now() + timedelta(days=1)
    Schedule.objects.bulk_create(
        Schedule(name=name, func=NOTHING, schedule_type="C", cron="0 4 * * *", next_run=later)
        for name in names(size)
    )

    def make_due() -> None:
        OrmQ.objects.all().delete()
        before = timezone.now() - timedelta(seconds=1)
        Schedule.objects.filter(name__in=names(due)).update(next_run=before)

    def pass_() -> None:
        scheduler(broker=broker)

    return _rows(what, pass_, pass_, make_due, lambda: OrmQ.objects.count() == due, HANDED_OVER)


def procrastinate(what: str, size: int, due: int) -> list[Row]:
    """Measure a pass of its periodic deferrer, without the worker that calls the jobs."""
    import asyncio

    import psycopg
    from procrastinate import App, PsycopgConnector
    from procrastinate.periodic import PeriodicDeferrer

    app = App(connector=PsycopgConnector())
    task = app.task(name="nothing")(nothing)
    for name, cron in zip(names(size), due_crons(size, due), strict=True):
        app.periodic(cron=cron, periodic_id=name)(task)
    deferrer = PeriodicDeferrer(registry=app.periodic_registry)
    at = time.time() // 60 * 60 + 30

    loop = asyncio.new_event_loop()
    loop.run_until_complete(app.open_async())
    loop.run_until_complete(app.schema_manager.apply_schema_async())

    def pass_() -> None:
        loop.run_until_complete(deferrer.defer_jobs(deferrer.get_previous_tasks(at=at)))

    def make_due() -> None:
        nonlocal at
        at += 60

    def is_right() -> bool:
        with psycopg.connect() as connection:
            jobs = connection.execute("SELECT count(*) FROM procrastinate_jobs").fetchall()
        return int(jobs[0][0]) % due == 0 and bool(jobs[0][0])

    pass_()
    return _rows(what, pass_, pass_, make_due, is_right, HANDED_OVER)


CONTENDERS: dict[str, Function] = {
    "product": product,
    "apscheduler": apscheduler,
    "celery_beat": celery_beat,
    "django_q2": django_q2,
    "procrastinate": procrastinate,
}
