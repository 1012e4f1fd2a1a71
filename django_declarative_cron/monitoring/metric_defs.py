"""Every metric there is: its name, its kind, its labels and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

PREFIX: Final = "declarative_cron_"

Source = Literal["events", "memory", "rows"]

OTHER: Final = "other"
"""The label of all tasks that have none of their own."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Args:
        name: without the prefix, and without what Prometheus adds to counters.
        kind: as Prometheus has it.
        source: what it is made from: events of a scheduler's process, its memory, or the rows.
        help: what it says.
        labels: names of its labels.
        buckets: upper bounds of a histogram, in seconds.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    source: Source
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def exposed(self) -> str:
        """Return the name under which it is asked for in queries."""
        return PREFIX + self.name + ("_total" if self.kind == "counter" else "")


_SHORT: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_LATE: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
_LONG: Final = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400)

METRICS: Final = (
    Metric("runs", "counter", "events", "Runs that ended", ("task", "outcome")),
    Metric("run_duration_seconds", "histogram", "events", "How long runs took", ("task",), _LONG),
    Metric(
        "run_lateness_seconds",
        "histogram",
        "events",
        "How long after their occurrence runs were started",
        ("task",),
        _LATE,
    ),
    Metric(
        "runs_late",
        "counter",
        "events",
        "Runs that started more than a minute after their occurrence",
        ("task",),
    ),
    Metric(
        "occurrences_not_run",
        "counter",
        "events",
        "Occurrences that were skipped or missed",
        ("task", "outcome", "reason"),
    ),
    Metric(
        "retries_exhausted", "counter", "events", "Failures that are not tried again", ("task",)
    ),
    Metric(
        "tick_duration_seconds",
        "histogram",
        "events",
        "How long ticks took that looked at due tasks",
        (),
        _SHORT,
    ),
    Metric("leading", "gauge", "memory", "Whether this process leads"),
    Metric("live", "gauge", "memory", "Whether its loop turns"),
    Metric("ready", "gauge", "memory", "Whether it leads, or would take over"),
    Metric("declared_tasks", "gauge", "memory", "Tasks in its registration set"),
    Metric("runs_in_progress", "gauge", "memory", "Runs whose callback has not ended"),
    Metric("results_waiting", "gauge", "memory", "Results that wait to be written"),
    Metric("last_tick_age_seconds", "gauge", "memory", "Time since its loop did something"),
    Metric("pool_size", "gauge", "memory", "How many runs go on at once; 0: any", ("runner",)),
    Metric("pool_busy", "gauge", "memory", "Runs that are being called", ("runner",)),
    Metric("pool_queued", "gauge", "memory", "Runs that wait for their turn", ("runner",)),
    Metric("pool_stuck", "gauge", "memory", "Runs that do not end when asked to", ("runner",)),
    Metric(
        "pool_oldest_wait_seconds",
        "gauge",
        "memory",
        "How long the first in the queue has waited",
        ("runner",),
    ),
    Metric(
        "scrape_database_success",
        "gauge",
        "memory",
        "Whether the rows could be read for this answer",
    ),
    Metric(
        "scrape_database_age_seconds", "gauge", "memory", "How old is what follows from the rows"
    ),
    Metric("term", "gauge", "rows", "Term of the lead"),
    Metric("has_leader", "gauge", "rows", "Whether a scheduler leads"),
    Metric("leaderless_seconds", "gauge", "rows", "For how long nobody has led"),
    Metric("schedulers", "gauge", "rows", "Instances that live"),
    Metric("tasks", "gauge", "rows", "Tasks by their status word", ("status",)),
    Metric("ended_last_hour", "gauge", "rows", "What ended within an hour", ("outcome",)),
    Metric("events_waiting", "gauge", "rows", "Events that wait for their receiver"),
    Metric("events_refused", "gauge", "rows", "Those of them that were refused"),
    Metric("events_dead_lettered", "gauge", "rows", "Events that were refused for too long"),
    Metric("events_oldest_seconds", "gauge", "rows", "For how long the oldest has waited"),
    Metric("task_starts", "counter", "rows", "Runs that were started, in any process", ("task",)),
    Metric("task_failures_in_row", "gauge", "rows", "Failures since the last success", ("task",)),
    Metric(
        "task_last_success_timestamp_seconds",
        "gauge",
        "rows",
        "When its last success ended",
        ("task",),
    ),
    Metric("task_next_run_timestamp_seconds", "gauge", "rows", "When it runs next", ("task",)),
)

BY_NAME: Final = {metric.name: metric for metric in METRICS}
