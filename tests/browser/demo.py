"""A shop on a calm day, as rows: what the pictures of the documentation show."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.models import ScheduledTask, SchedulerInstance, SchedulerState, TaskRun
from django_declarative_cron.store.rows import terms_of

from ..admin import rows

TRACEBACK = """Traceback (most recent call last):
  File "/usr/lib/python3.13/urllib/request.py", line 1319, in do_open
    h.request(req.get_method(), req.selector, req.data, headers)
  File "/srv/shop/shop/rates.py", line 24, in fetch_rates
    answer = bank.daily_rates(currency="EUR")
  File "/srv/shop/shop/bank.py", line 61, in daily_rates
    raise BankDown(f"the bank answered {status}")
shop.bank.BankDown: the bank answered 503
"""

DEMO_RUN = "exchange-rates"

TASKS: list[tuple[str, str, str, str, float, str]] = [
    ("import-stock", "0,10,20,30,40,50 * * * *", "UTC", "shop.stock.import_files", 8, "overdue"),
    ("sales-digest", "30 6 * * *", "Europe/Berlin", "shop.digest.write", 42, ""),
    ("backup-database", "45 3 * * *", "Europe/Berlin", "shop.backup.run", 840, ""),
    ("exchange-rates", "15 * * * *", "UTC", "shop.rates.fetch_rates", 3, "fails"),
    ("send-newsletters", "0 9 * * 1-5", "America/New_York", "mail.newsletters.send", 1260, ""),
    ("heartbeat", "* * * * *", "UTC", "shop.monitor.beat", 0.2, ""),
    ("rebuild-search", "5 */2 * * *", "UTC", "shop.search.rebuild", 410, "running"),
    ("quarterly-report", "0 5 1 1,4,7,10 *", "Asia/Tokyo", "reports.quarter.build", 300, "broken"),
    ("clear-sessions", "15 4 * * *", "Europe/Berlin", "command clearsessions", 2, ""),
    ("price-watch", "0 * * * *", "Europe/London", "shop.prices.watch", 95, "paused"),
    ("thumbnails", "0,15,30,45 * * * *", "UTC", "media.thumbnails.build", 61, "flaky"),
    ("archive-orders", "0 2 * * 0", "Europe/Berlin", "shop.orders.archive", 1900, "missed"),
]


def fill(now: datetime) -> SchedulerState:
    """Store it all, as it would be at an instant."""
    chance = random.Random(7)
    state = rows.deployment()
    worker = _instances(state, now)
    for name, cron, zone, callback, seconds, fate in TASKS:
        task = rows.task(
            name,
            cron=cron,
            timezone=zone,
            callback=callback,
            declaration={
                "args": [],
                "options": {},
                "dialect": "ojs" if "/" in cron else "posix",
                "overlap_policy": "coalesce",
            },
            registered_at=now - timedelta(days=40),
        )
        _history(task, worker, now, seconds, fate, chance)
        _fate(task, worker, now, fate)
        task.save()
    return state


def _instances(state: SchedulerState, now: datetime) -> SchedulerInstance:
    since = now - timedelta(days=3)
    shared: dict[str, Any] = {"release": "2026.11.3", "started_at": since, "initialized_at": since}
    shared["heartbeat_at"] = now + timedelta(hours=1)
    leader = rows.instance(host="shop-worker-1", **shared)
    rows.instance(host="shop-worker-2", pid=4712, **shared)
    state.leader, state.initialized_at = leader, since
    state.save()
    return leader


def _history(
    task: ScheduledTask,
    worker: SchedulerInstance,
    now: datetime,
    seconds: float,
    fate: str,
    chance: random.Random,
) -> None:
    schedule: Schedule = terms_of(task).schedule
    instant, runs = now, []
    while (found := schedule.latest_at_or_before(instant)) is not None and len(runs) < 1600:
        if found < now - timedelta(days=30):
            break
        runs.append(_run(task, worker, found, seconds, fate, chance, now))
        instant = found - timedelta(microseconds=1)
    runs = [run for run in runs if run.finished_at is None or run.finished_at <= now]
    TaskRun.objects.bulk_create(reversed(runs))
    newest = runs[0].scheduled_for if runs else None
    started = [run for run in runs if run.started_at is not None]
    task.discharged_at = task.occurrence_at = newest
    task.last_attempt_at = started[0].started_at if started else None
    good = [run.finished_at for run in runs if run.outcome == "succeeded"]
    task.last_success_at = good[0] if good else None
    task.attempt, task.run_count = 1, len(started)
    task.next_run_at = task.wake_at = schedule.next_after(now)


def _run(
    task: ScheduledTask,
    worker: SchedulerInstance,
    occurrence: datetime,
    seconds: float,
    fate: str,
    chance: random.Random,
    now: datetime,
) -> TaskRun:
    run = TaskRun(
        scheduler=task.scheduler,
        task_name=task.name,
        scheduled_for=occurrence,
        started_at=occurrence + timedelta(milliseconds=chance.randint(20, 400)),
        reason="due",
        outcome="succeeded",
        attempt=1,
        instance=worker,
        term=3,
    )
    taken = seconds * chance.uniform(0.7, 1.5)
    run.finished_at = run.started_at + timedelta(seconds=taken)
    is_late = now - occurrence < timedelta(hours=4)
    if (fate == "fails" and is_late) or (fate == "flaky" and chance.random() < 0.06):
        run.outcome, run.traceback = "failed", TRACEBACK
        run.error = "shop.bank.BankDown: the bank answered 503"
    if fate == "missed" and now - occurrence < timedelta(days=8):
        run.outcome, run.reason, run.attempt = "missed", "no_scheduler", 0
        run.started_at, run.instance = None, None
    if fate == "paused" and now - occurrence < timedelta(hours=5):
        run.outcome, run.reason, run.attempt = "skipped", "disabled", 0
        run.started_at, run.instance = None, None
    return run


def _fate(task: ScheduledTask, worker: SchedulerInstance, now: datetime, fate: str) -> None:
    if fate == "fails":
        task.failures, task.pending_retry_until = 4, now + timedelta(minutes=3)
        task.wake_at = task.pending_retry_until
    if fate == "paused":
        task.paused_since = now - timedelta(hours=5)
        task.paused_until = now + timedelta(hours=14)
        task.next_run_at = task.wake_at = task.paused_until + timedelta(minutes=30)
        rows.act(
            task.name,
            note="The supplier changes its prices tonight.",
            created_at=task.paused_since,
            until=task.paused_until,
        )
    if fate == "running":
        run = rows.run(
            task.name,
            "running",
            scheduled_for=now - timedelta(minutes=6),
            finished_at=None,
            running_slot=task.name,
            instance=worker,
            epoch=1,
        )
        task.running_run, task.wake_at = run.pk, None
    if fate == "overdue":
        task.next_run_at = task.wake_at = now - timedelta(minutes=9)
    if fate == "broken":
        task.broken_reason = "No module named 'shop.archive'"
