"""A shop on a calm day, as rows: what the pictures of the documentation show."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.models import ScheduledTask, SchedulerInstance, TaskRun
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


def fill(now: datetime) -> None:
    """Store it all, as it would be at an instant."""
    state, since = rows.deployment(), now - timedelta(days=3)
    shared: dict[str, Any] = {"release": "2026.11.3", "started_at": since, "initialized_at": since}
    shared["heartbeat_at"] = now + timedelta(hours=1)
    worker = rows.instance(host="shop-worker-1", **shared)
    rows.instance(host="shop-worker-2", pid=4712, **shared)
    state.leader, state.initialized_at = worker, since
    state.save()
    demo = Demo(now, worker, random.Random(7))
    for name, cron, zone, callback, seconds, fate in TASKS:
        declaration = {
            "args": [],
            "options": {},
            "dialect": "ojs" if "/" in cron else "posix",
            "overlap_policy": "coalesce",
        }
        declared = {"cron": cron, "timezone": zone, "callback": callback}
        registered_at = now - timedelta(days=40)
        task = rows.task(name, declaration=declaration, registered_at=registered_at, **declared)
        demo.history(task, seconds, fate)
        demo.fate(task, fate)
        task.save()


@dataclass
class Demo:
    now: datetime
    worker: SchedulerInstance
    chance: random.Random

    def history(self, task: ScheduledTask, seconds: float, fate: str) -> None:
        schedule: Schedule = terms_of(task).schedule
        instant, runs = self.now, []
        while (found := schedule.latest_at_or_before(instant)) is not None and len(runs) < 1600:
            if found < self.now - timedelta(days=30):
                break
            runs.append(self.run(task, found, seconds, fate))
            instant = found - timedelta(microseconds=1)
        runs = [run for run in runs if run.finished_at is None or run.finished_at <= self.now]
        TaskRun.objects.bulk_create(reversed(runs))
        started = [run for run in runs if run.started_at is not None]
        good = [run.finished_at for run in runs if run.outcome == "succeeded"]
        task.discharged_at = task.occurrence_at = runs[0].scheduled_for if runs else None
        task.last_attempt_at = started[0].started_at if started else None
        task.last_success_at = good[0] if good else None
        task.attempt, task.run_count = 1, len(started)
        task.next_run_at = task.wake_at = schedule.next_after(self.now)

    def run(self, task: ScheduledTask, occurrence: datetime, seconds: float, fate: str) -> TaskRun:
        run = TaskRun(
            scheduler=task.scheduler,
            task_name=task.name,
            scheduled_for=occurrence,
            started_at=occurrence + timedelta(milliseconds=self.chance.randint(20, 400)),
            reason="due",
            outcome="succeeded",
            attempt=1,
            instance=self.worker,
            term=3,
        )
        taken, age = seconds * self.chance.uniform(0.7, 1.5), self.now - occurrence
        run.finished_at = run.started_at + timedelta(seconds=taken)
        is_late = age < timedelta(hours=4)
        if (fate == "fails" and is_late) or (fate == "flaky" and self.chance.random() < 0.06):
            run.outcome, run.traceback = "failed", TRACEBACK
            run.error = "shop.bank.BankDown: the bank answered 503"
        never = None
        if fate == "missed" and age < timedelta(days=8):
            never = ("missed", "no_scheduler")
        if fate == "paused" and age < timedelta(hours=5):
            never = ("skipped", "disabled")
        if never is not None:
            run.outcome, run.reason = never
            run.attempt, run.started_at, run.instance = 0, None, None
        return run

    def fate(self, task: ScheduledTask, fate: str) -> None:
        now, ago = self.now, self.now - timedelta(minutes=6)
        if fate == "fails":
            task.failures = 4
            task.pending_retry_until = task.wake_at = now + timedelta(minutes=3)
        if fate == "paused":
            task.paused_since = now - timedelta(hours=5)
            task.paused_until = now + timedelta(hours=14)
            task.next_run_at = task.wake_at = task.paused_until + timedelta(minutes=30)
            note = "The supplier changes its prices tonight."
            within = {"created_at": task.paused_since, "until": task.paused_until}
            rows.act(task.name, note=note, **within)
        if fate == "running":
            going_on = {"finished_at": None, "running_slot": task.name, "epoch": 1}
            run = rows.run(
                task.name, "running", scheduled_for=ago, instance=self.worker, **going_on
            )
            task.running_run, task.wake_at = run.pk, None
        if fate == "overdue":
            task.next_run_at = task.wake_at = now - timedelta(minutes=9)
        if fate == "broken":
            task.broken_reason = "No module named 'shop.archive'"
