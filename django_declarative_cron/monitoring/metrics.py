"""The metrics of a process for Prometheus, by its own client library.

A scheduler counts by the events it publishes, and answers for what it has in memory; what
follows from the rows is the same in every process. Nothing is heard, and nothing is asked,
where nobody asked for metrics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

from .. import conf
from ..core import events
from ..runtime import probes
from ..runtime.clock import Clock, system_clock
from ..runtime.runners import Load
from ..runtime.scheduler import Scheduler
from ..signals import signal_of
from ..store import database
from ..store.guard import Standing
from ..store.metrics_queries import Counts, counts_of
from ..store.task_status import patience
from .cached_query import Latest
from .label_limit import Names
from .metric_defs import BY_NAME, METRICS, OTHER, PREFIX

NAMESPACE = PREFIX.rstrip("_")


class MetricsUnavailableError(RuntimeError):
    """Tell that the client library of Prometheus is not installed."""


def library() -> Any:
    """Return the client library.

    Raises:
        MetricsUnavailableError: it is not installed.
    """
    try:
        import prometheus_client
    except ImportError:
        words = 'Metrics need prometheus-client: install "django-declarative-cron[metrics]".'
        raise MetricsUnavailableError(words) from None
    return prometheus_client


class EventMetrics:
    """What is counted by the events that this process publishes.

    Args:
        registry: of the client library.
        names: labels of tasks.
    """

    def __init__(self, registry: Any, names: Names) -> None:
        prometheus = library()
        self._names = names
        names.on_freed(self._forget)
        self._metrics: dict[str, Any] = {}
        for each in METRICS:
            if each.source != "events":
                continue
            given = {"registry": registry, "namespace": NAMESPACE}
            if each.kind == "histogram":
                made = prometheus.Histogram(
                    each.name, each.help, each.labels, buckets=each.buckets, **given
                )
            else:
                made = prometheus.Counter(each.name, each.help, each.labels, **given)
            self._metrics[each.name] = made
        self._hears = {
            events.TaskRunStarted: self._started,
            events.TaskRunCompleted: self._ended,
            events.TaskRunFailed: self._ended,
            events.TaskRunCancelled: self._ended,
            events.TaskRunInterrupted: self._interrupted,
            events.TaskSkipped: self._not_run,
            events.TaskRetriesExhausted: self._exhausted,
            events.PollCompleted: self._polled,
        }

    def start(self) -> None:
        """Count from now on."""
        for kind, hear in self._hears.items():
            signal_of(kind).connect(hear)

    def stop(self) -> None:
        """Count no more."""
        for kind, hear in self._hears.items():
            signal_of(kind).disconnect(hear)

    def _forget(self, task: str) -> None:
        for name, metric in self._metrics.items():
            labels = BY_NAME[name].labels
            if "task" not in labels:
                continue
            found = [each.labels for family in metric.collect() for each in family.samples]
            for values in {tuple(each[label] for label in labels) for each in found}:
                if values[0] == task:
                    # Another run may have ended meanwhile, and another scrape gone before.
                    with suppress(KeyError):
                        metric.remove(*values)

    def _started(self, event: events.TaskRunStarted, **_: object) -> None:
        if event.lateness is None:
            return
        task = self._names.label(event.task_name)
        self._metrics["run_lateness_seconds"].labels(task).observe(event.lateness.total_seconds())
        if event.is_late:
            self._metrics["runs_late"].labels(task).inc()

    def _ended(self, event: Any, **_: object) -> None:
        task = self._names.label(event.task_name)
        self._metrics["runs"].labels(task, _outcome(event)).inc()
        self._metrics["run_duration_seconds"].labels(task).observe(event.duration)

    def _interrupted(self, event: events.TaskRunInterrupted, **_: object) -> None:
        self._metrics["runs"].labels(self._names.label(event.task_name), "interrupted").inc()

    def _not_run(self, event: events.TaskSkipped, **_: object) -> None:
        task = self._names.label(event.task_name)
        counter = self._metrics["occurrences_not_run"]
        counter.labels(task, event.outcome, event.reason).inc(event.count)

    def _exhausted(self, event: events.TaskRetriesExhausted, **_: object) -> None:
        self._metrics["retries_exhausted"].labels(self._names.label(event.task_name)).inc()

    def _polled(self, event: events.PollCompleted, **_: object) -> None:
        self._metrics["tick_duration_seconds"].observe(event.duration)


def _outcome(event: Any) -> str:
    match event:
        case events.TaskRunCompleted():
            return "succeeded"
        case events.TaskRunCancelled():
            return "cancelled"
    # An error of the callback begins with the name of its class.
    return "timed_out" if event.error.startswith("timed out") else "failed"


class Memory:
    """What a scheduler's process knows of itself, when it is asked.

    Args:
        scheduler: of this process.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def collect(self) -> Iterator[Any]:
        """Return the metrics, for the client library."""
        scheduler = self._scheduler
        found = probes.report(scheduler)
        numbers = {
            "leading": scheduler.standing is Standing.LEADING,
            "live": found.live,
            "ready": found.ready,
            "declared_tasks": len(scheduler.declarations),
            "runs_in_progress": scheduler.running,
            "results_waiting": scheduler.unrecorded,
            "last_tick_age_seconds": scheduler.pulse.age(),
        }
        for name, value in numbers.items():
            yield family(name, [((), value)])
        loads: list[Load] = scheduler.loads
        for name, field in _OF_POOLS.items():
            yield family(name, [((load.runner,), getattr(load, field)) for load in loads])


_OF_POOLS = {
    "pool_size": "size",
    "pool_busy": "busy",
    "pool_queued": "queued",
    "pool_stuck": "stuck",
    "pool_oldest_wait_seconds": "oldest_wait",
}


class Rows:
    """What the rows say, when it is asked.

    Args:
        latest: gives the newest counts, and how old they are.
        names: labels of tasks.
    """

    def __init__(self, latest: Latest[Counts], names: Names) -> None:
        self._latest = latest
        self._names = names

    def collect(self) -> Iterator[Any]:
        """Return the metrics, for the client library."""
        counts, age, is_new = self._latest.get()
        yield family("scrape_database_success", [((), is_new)])
        if counts is None:
            return
        yield family("scrape_database_age_seconds", [((), age)])
        self._names.free(counts.gone)
        yield from of_lead(counts)
        yield from of_tasks(counts, self._names)


def of_lead(counts: Counts) -> Iterator[Any]:
    """Return the metrics of a deployment as a whole."""
    lead, leaderless = counts.lead, counts.lead.leaderless()
    within = patience(conf.options().LEASE).total_seconds()
    numbers: dict[str, float] = {
        "term": lead.term,
        "has_leader": leaderless is None,
        "leaderless_seconds": leaderless or 0.0,
        "schedulers": sum(silent <= within for silent in lead.present.values()),
    }
    if counts.events is not None:
        age = counts.events.age
        numbers |= {
            "events_waiting": counts.events.waiting,
            "events_refused": counts.events.refused,
            "events_dead_lettered": counts.events.dead_lettered,
            "events_oldest_seconds": 0.0 if age is None else age.total_seconds(),
        }
    for name, value in numbers.items():
        yield family(name, [((), value)])
    yield family("tasks", [((str(word),), n) for word, n in counts.by_status.items()])
    yield family("ended_last_hour", [((word,), n) for word, n in counts.by_outcome.items()])


def of_tasks(counts: Counts, names: Names) -> Iterator[Any]:
    """Return the metrics of single tasks, of those that have a label of their own."""
    labelled = [(names.label(task.name or ""), task) for task in counts.tasks]
    own = [(label, task) for label, task in labelled if label != OTHER]
    for name, field in _OF_TASKS.items():
        samples = ((label, getattr(task, field)) for label, task in own)
        yield family(
            name, [((label,), _number(value)) for label, value in samples if value is not None]
        )


_OF_TASKS = {
    "task_starts": "run_count",
    "task_failures_in_row": "failures",
    "task_last_success_timestamp_seconds": "last_success_at",
    "task_next_run_timestamp_seconds": "next_start_at",
}


def _number(value: Any) -> float:
    return float(value.timestamp() if isinstance(value, datetime) else value)


def family(name: str, samples: Iterable[tuple[tuple[str, ...], float]]) -> Any:
    """Make a metric of the client library."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    metric = BY_NAME[name]
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    found = make(PREFIX + name, metric.help, labels=metric.labels)
    for labels, value in samples:
        found.add_metric(labels, float(value))
    return found


def read_rows(clock: Clock = system_clock, asked: Collection[str] = ()) -> Counts | None:
    """Count what the rows say of this project's deployment."""
    options = conf.options()
    using, deployment = database.alias(), options.DEPLOYMENT
    return counts_of(
        using, deployment, clock.now(), clock, options.METRICS_MAX_TASK_LABELS + 1, asked
    )


def exposition(counts: Counts | None, openmetrics: bool = False) -> tuple[bytes, str]:
    """Write what the rows say as Prometheus reads it.

    Returns:
        the text, and its content type.
    """
    prometheus = library()
    registry = prometheus.CollectorRegistry(auto_describe=False)
    registry.register(Rows(Latest.of(counts), Names(conf.options().METRICS_MAX_TASK_LABELS)))
    if openmetrics:
        from prometheus_client.openmetrics import exposition as newer

        write: Any = newer.generate_latest
        return write(registry), newer.CONTENT_TYPE_LATEST
    return prometheus.generate_latest(registry), prometheus.CONTENT_TYPE_LATEST
