"""Define every metric, and read the files for Grafana (dashboard) and Prometheus (alert rules)."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Final, Literal

PREFIX: Final = "declarative_cron_"

OTHER: Final = "other"
"""The label of all tasks beyond the limit."""


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: Literal["counter", "gauge", "histogram"]
    source: Literal["events", "memory", "rows"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def exposed(self) -> str:
        return PREFIX + self.name + ("_total" if self.kind == "counter" else "")


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(name, "counter", "events", text, labels)


def _histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    return Metric(name, "histogram", "events", text, labels, buckets)


def _memory(name: str, text: str, *labels: str) -> Metric:
    return Metric(name, "gauge", "memory", text, labels)


def _rows(name: str, text: str, *labels: str) -> Metric:
    return Metric(name, "gauge", "rows", text, labels)


_SHORT: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_LATE: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
_LONG: Final = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400)

METRICS: Final = (
    _counter("runs", "Runs that ended", "task", "outcome"),
    _histogram("run_duration_seconds", "Time from claim to end of runs", _LONG, "task"),
    _histogram("run_lateness_seconds", "Time from occurrence to start", _LATE, "task"),
    _counter("runs_late", "Runs that started more than one minute late", "task"),
    _counter("occurrences_not_run", "Skipped or missed occurrences", "task", "outcome", "reason"),
    _counter("retries_exhausted", "Failures without another retry", "task"),
    _histogram("tick_duration_seconds", "Duration of ticks with due tasks", _SHORT),
    _memory("leading", "Whether this process is the leader"),
    _memory("live", "Whether the loop of this process runs"),
    _memory("ready", "Whether this process is leader or standby"),
    _memory("declared_tasks", "Tasks in the registration set"),
    _memory("runs_in_progress", "Runs whose callback has not ended"),
    _memory("results_waiting", "Results that are not stored yet"),
    _memory("last_tick_age_seconds", "Time since the last activity of the loop"),
    _memory("pool_size", "Limit of concurrent runs; 0 if unlimited", "runner"),
    _memory("pool_busy", "Runs that execute", "runner"),
    _memory("pool_queued", "Runs that wait for a free place", "runner"),
    _memory("pool_stuck", "Runs that did not end when asked to", "runner"),
    _memory("pool_oldest_wait_seconds", "Waiting time of the first queued run", "runner"),
    _memory("scrape_database_success", "Whether this scrape read the database"),
    _memory("scrape_database_age_seconds", "Age of the values from the database"),
    _rows("term", "Term of the leader"),
    _rows("has_leader", "Whether there is a leader"),
    _rows("leaderless_seconds", "Time without a leader"),
    _rows("schedulers", "Live instances"),
    _rows("tasks", "Tasks by status", "status"),
    _rows("ended_last_hour", "Runs that ended within one hour", "outcome"),
    _rows("events_waiting", "Undelivered events"),
    _rows("events_refused", "Undelivered events that were refused at least once"),
    _rows("events_dead_lettered", "Dead-lettered events"),
    _rows("events_oldest_seconds", "Age of the oldest undelivered event"),
    Metric("task_starts", "counter", "rows", "Runs started, in any process", ("task",)),
    _rows("task_failures_in_row", "Failures since the last success", "task"),
    _rows("task_last_success_timestamp_seconds", "End of the last success", "task"),
    _rows("task_next_run_timestamp_seconds", "Time of the next run", "task"),
    _rows("task_tag", "1 for each tag of a task, with `METRICS_TAGS`", "task", "tag"),
)

BY_NAME: Final = {metric.name: metric for metric in METRICS}

FILES: Final = {"dashboard": "grafana-dashboard.json", "alerts": "prometheus-alerts.yml"}


def text_of(name: str) -> str:
    return (files(__package__) / "files" / FILES[name]).read_text(encoding="utf-8")
