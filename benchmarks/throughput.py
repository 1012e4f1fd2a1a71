"""Runs of a callback that does nothing, called and recorded in a second."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from .figures import Figure, Row
from .measuring import NOTHING, names, nothing, wait_until
from .processes import Function, measured

POSTGRES = "recorded runs, PostgreSQL"
SQLITE = "recorded runs, SQLite"
FIGURES = (
    Figure(POSTGRES, "per second", target=2000, is_rate=True),
    Figure(SQLITE, "per second", target=2000, is_rate=True),
)
NO_RECORD = {
    "apscheduler": "it keeps no record of runs",
    "celery_beat": "it only hands runs over to workers of Celery",
}
PATIENCE = 60.0


def measure(small: bool = False) -> list[Row]:
    """Measure everybody that calls and records runs."""
    runs, fewer = (30, 10) if small else (5000, 2000)
    rows = measured("product", product, what=POSTGRES, runs=runs)
    rows += measured("product", product, sqlite=True, what=SQLITE, runs=runs)
    for contender, work in CONTENDERS.items():
        rows += measured(contender, work, what=POSTGRES, runs=fewer)
        rows.append(Row(SQLITE, contender=contender, note="measured with PostgreSQL only"))
    rows += [Row(contender=each, note=note) for each, note in NO_RECORD.items()]
    return rows


def _row(what: str, runs: int, recorded: int, seconds: float) -> list[Row]:
    if recorded < runs:
        return [Row(what, note=f"recorded {recorded:,} of {runs:,} runs within {PATIENCE:.0f} s")]
    return [Row(what, runs / seconds)]


def product(what: str, runs: int) -> list[Row]:
    """Let every task be due at one instant; the clock starts there."""
    from django_declarative_cron import Scheduler
    from django_declarative_cron.models import TaskRun

    def recorded() -> int:
        return TaskRun.objects.filter(outcome="succeeded").count()

    at = _second(6 + runs / 1000)
    cron = f"{at.second} {at.minute} {at.hour} {at.day} {at.month} *"
    scheduler = Scheduler()
    scheduler.initialize([{"name": n, "cron": cron, "callback": NOTHING} for n in names(runs)])
    if datetime.now(UTC) >= at:
        return [Row(what, note="registration took too long on this machine")]
    time.sleep((at - datetime.now(UTC)).total_seconds())
    began = time.perf_counter()
    wait_until(lambda: recorded() >= runs, PATIENCE)
    seconds = time.perf_counter() - began
    scheduler.stop()
    return _row(what, runs, recorded(), seconds)


def _second(ahead: float) -> datetime:
    """Return a full second of the future."""
    return datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=int(ahead))


def django_q2(what: str, runs: int) -> list[Row]:
    """Run a cluster of two workers; the clock starts with the first result."""
    from django.db import connection
    from django_q.cluster import Cluster
    from django_q.models import Success
    from django_q.tasks import async_task

    for _ in range(runs):
        async_task(NOTHING)
    connection.close()
    cluster = Cluster()
    cluster.start()
    wait_until(Success.objects.exists, PATIENCE)
    before, began = Success.objects.count(), time.perf_counter()
    wait_until(lambda: Success.objects.count() >= runs, PATIENCE)
    seconds = time.perf_counter() - began
    recorded = Success.objects.count()
    cluster.stop()
    return _row(what, runs - before, recorded - before, seconds)


def procrastinate(what: str, runs: int) -> list[Row]:
    """Run a worker with ten jobs at a time until none is left."""
    import asyncio

    import psycopg
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector())
    task = app.task(name="nothing")(nothing)

    async def work() -> float:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            await task.batch_defer_async(*[{} for _ in range(runs)])
            began = time.perf_counter()
            await app.run_worker_async(
                wait=False, concurrency=10, install_signal_handlers=False, listen_notify=False
            )
            return time.perf_counter() - began

    seconds = asyncio.run(work())
    with psycopg.connect() as connection:
        statement = "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'"
        recorded = int(connection.execute(statement).fetchall()[0][0])
    return _row(what, runs, recorded, seconds)


CONTENDERS: dict[str, Function] = {"django_q2": django_q2, "procrastinate": procrastinate}
