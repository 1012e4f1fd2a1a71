"""The metrics of a process for Prometheus, by its client library, and the port that serves them.

A scheduler counts the events that it publishes, and reports its memory at each scrape. The metrics
from the database are the same in each process. Without an exporter nothing is counted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from django.db import connections

from .. import conf
from ..core import events
from ..runtime import probes
from ..runtime.clock import Clock, system_clock
from ..runtime.connections import own_connections, renew
from ..runtime.probes import Answer, Listener
from ..runtime.scheduler import Scheduler
from ..signals import log_line, report, signal_of
from ..store import database
from ..store.guard import Role
from ..store.overview import Counts, counts_of
from ..store.queries import tags_of
from ..store.status import patience
from .metric_defs import BY_NAME, METRICS, OTHER, PREFIX, Metric

T = TypeVar("T")

MAX_AGE = 5.0
"""Seconds for which a result is used again."""

MAX_SCRAPES = 4
"""Scrapes may wait for the database, so they must not occupy all threads of the listener."""


class MetricsUnavailableError(RuntimeError):
    """Raised if the Prometheus client library is not installed."""


def library() -> Any:
    """Return the client library."""
    try:
        import prometheus_client
    except ImportError:
        text = 'Metrics need prometheus-client: install "django-declarative-cron[metrics]".'
        raise MetricsUnavailableError(text) from None
    return prometheus_client


class TaskLabels:
    """Give the first tasks a label each, and all others one label together."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._labels: set[str] = set()
        self.on_release: Callable[[str], None] = lambda name: None
        self._has_warned = False

    @property
    def used(self) -> Collection[str]:
        return frozenset(self._labels)

    def release(self, names: Iterable[str]) -> None:
        for name in self._labels.intersection(names):
            self._labels.discard(name)
            self.on_release(name)

    def label(self, name: str) -> str:
        if name in self._labels:
            return name
        if len(self._labels) < self._limit:
            self._labels.add(name)
            return name
        if not self._has_warned:
            self._has_warned = True
            log_line("label_limit", limit=self._limit)
        return OTHER


_COUNTED = (
    *(events.TaskRunStarted, events.TaskRunCompleted, events.TaskRunFailed),
    *(events.TaskRunCancelled, events.TaskRunInterrupted, events.TaskSkipped),
    *(events.TaskRetriesExhausted, events.PollCompleted),
)


class EventMetrics:
    def __init__(self, registry: Any, labels: TaskLabels) -> None:
        self._labels = labels
        labels.on_release = self._remove
        counted = [each for each in METRICS if each.source == "events"]
        self._metrics = {each.name: _client_metric(each, registry) for each in counted}

    def start(self) -> None:
        for kind in _COUNTED:
            signal_of(kind).connect(self._receive)

    def stop(self) -> None:
        for kind in _COUNTED:
            signal_of(kind).disconnect(self._receive)

    def _remove(self, task: str) -> None:
        for name, metric in self._metrics.items():
            labels = BY_NAME[name].labels
            if "task" not in labels:
                continue
            samples = [each.labels for family in metric.collect() for each in family.samples]
            for values in {tuple(each[label] for label in labels) for each in samples}:
                if values[0] == task:
                    with suppress(KeyError):  # Another scrape may have removed it.
                        metric.remove(*values)

    def _count(self, name: str, event: events.TaskEvent, *values: str, number: int = 1) -> None:
        self._metrics[name].labels(self._labels.label(event.task_name), *values).inc(number)

    def _observe(self, name: str, event: events.TaskEvent, seconds: float) -> None:
        self._metrics[name].labels(self._labels.label(event.task_name)).observe(seconds)

    def _receive(self, event: Any, **_: object) -> None:
        match event:
            case events.TaskRunStarted(lateness=timedelta() as lateness):
                self._observe("run_lateness_seconds", event, lateness.total_seconds())
                if event.is_late:
                    self._count("runs_late", event)
            case events.TaskRunCompleted() | events.TaskRunFailed() | events.TaskRunCancelled():
                self._count("runs", event, _outcome(event))
                self._observe("run_duration_seconds", event, event.duration)
            case events.TaskRunInterrupted():
                self._count("runs", event, "interrupted")
            case events.TaskSkipped():
                values = event.outcome, event.reason
                self._count("occurrences_not_run", event, *values, number=event.count)
            case events.TaskRetriesExhausted():
                self._count("retries_exhausted", event)
            case events.PollCompleted():
                self._metrics["tick_duration_seconds"].observe(event.duration)


def _client_metric(metric: Metric, registry: Any) -> Any:
    prometheus = library()
    options: dict[str, Any] = {"registry": registry, "namespace": PREFIX.rstrip("_")}
    if metric.kind == "histogram":
        options["buckets"] = metric.buckets
        return prometheus.Histogram(metric.name, metric.help, metric.labels, **options)
    return prometheus.Counter(metric.name, metric.help, metric.labels, **options)


def _outcome(event: Any) -> str:
    match event:
        case events.TaskRunCompleted():
            return "succeeded"
        case events.TaskRunCancelled():
            return "cancelled"
    # The error of a callback starts with the name of its class.
    return "timed_out" if event.error.startswith("timed out") else "failed"


class ProcessCollector:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def collect(self) -> Iterator[Any]:
        scheduler = self._scheduler
        health = probes.report(scheduler)
        yield from _gauges(
            {
                "leading": scheduler.role is Role.LEADING,
                "live": health.live,
                "ready": health.ready,
                "declared_tasks": len(scheduler.declarations),
                "runs_in_progress": scheduler.running,
                "results_waiting": scheduler.unrecorded,
                "last_tick_age_seconds": scheduler.pulse.age(),
            }
        )
        loads = scheduler.loads
        for field in ("size", "busy", "queued", "stuck", "oldest_wait"):
            name = "pool_oldest_wait_seconds" if field == "oldest_wait" else f"pool_{field}"
            yield _family(name, [((load.runner,), getattr(load, field)) for load in loads])


class DatabaseCollector:
    def __init__(
        self, counts: Callable[[], tuple[Counts | None, float, bool]], labels: TaskLabels
    ) -> None:
        self._counts = counts
        self._labels = labels

    def collect(self) -> Iterator[Any]:
        counts, age, is_new = self._counts()
        yield from _gauges({"scrape_database_success": is_new})
        if counts is not None:
            yield from _gauges({"scrape_database_age_seconds": age})
            self._labels.release(counts.gone)
            yield from _of_deployment(counts)
            yield from _of_tasks(counts, self._labels)


def _of_deployment(counts: Counts) -> Iterator[Any]:
    lead, leaderless = counts.lead, counts.lead.leaderless()
    values = {
        "term": lead.state.term,
        "has_leader": leaderless is None,
        "leaderless_seconds": leaderless or 0.0,
        "schedulers": len(lead.heard(patience(conf.options().LEASE))),
    }
    if counts.events is not None:
        age = counts.events.age
        values |= {
            "events_waiting": counts.events.waiting,
            "events_refused": counts.events.refused,
            "events_dead_lettered": counts.events.dead_lettered,
            "events_oldest_seconds": 0.0 if age is None else age.total_seconds(),
        }
    yield from _gauges(values)
    yield _family("tasks", [((str(word),), n) for word, n in counts.by_status.items()])
    yield _family("ended_last_hour", [((word,), n) for word, n in counts.by_outcome.items()])


_TASK_COLUMNS = {
    "task_starts": "run_count",
    "task_failures_in_row": "failures",
    "task_last_success_timestamp_seconds": "last_success_at",
    "task_next_run_timestamp_seconds": "next_start_at",
}


def _of_tasks(counts: Counts, labels: TaskLabels) -> Iterator[Any]:
    labelled = [(labels.label(task.name or ""), task) for task in counts.tasks]
    own = [(label, task) for label, task in labelled if label != OTHER]
    for name, column in _TASK_COLUMNS.items():
        samples = ((label, getattr(task, column)) for label, task in own)
        yield _family(name, [((label,), _number(it)) for label, it in samples if it is not None])
    if conf.options().METRICS_TAGS:
        tags = [(label, tag) for label, task in own for tag in tags_of(task)]
        kept = sorted({tag for _, tag in tags})[: conf.options().METRICS_MAX_TASK_LABELS]
        shown = sorted({(label, tag if tag in kept else OTHER) for label, tag in tags})
        yield _family("task_tag", [(labels, 1) for labels in shown])


def _number(value: Any) -> float:
    return float(value.timestamp() if isinstance(value, datetime) else value)


def _gauges(values: dict[str, float]) -> Iterator[Any]:
    for name, value in values.items():
        yield _family(name, [((), value)])


def _family(name: str, samples: Iterable[tuple[tuple[str, ...], float]]) -> Any:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    metric = BY_NAME[name]
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(PREFIX + name, metric.help, labels=metric.labels)
    for labels, value in samples:
        family.add_metric(labels, float(value))
    return family


def read_counts(clock: Clock = system_clock, asked: Collection[str] = ()) -> Counts | None:
    """Return the counts of this project's deployment, with a time limit for each statement."""
    options, using = conf.options(), database.alias()
    limit = options.METRICS_MAX_TASK_LABELS + 1
    with database.reading(connections[using]):
        return counts_of(
            using,
            options.DEPLOYMENT,
            clock.now(),
            clock.database_time(),
            limit,
            asked,
            has_tags=options.METRICS_TAGS,
        )


def exposition(counts: Counts | None, openmetrics: bool = False) -> tuple[bytes, str]:
    """Return the metrics from the database as text for Prometheus, and its content type."""
    prometheus = library()
    registry = prometheus.CollectorRegistry(auto_describe=False)
    labels = TaskLabels(conf.options().METRICS_MAX_TASK_LABELS)
    registry.register(DatabaseCollector(lambda: (counts, 0.0, True), labels))
    if openmetrics:
        from prometheus_client.openmetrics import exposition as newer

        write: Any = newer.generate_latest
        return write(registry), newer.CONTENT_TYPE_LATEST
    return prometheus.generate_latest(registry), prometheus.CONTENT_TYPE_LATEST


# --- the port of a scheduler ---


class CachedQuery(Generic[T]):
    """Read on demand, one thread at a time, and keep the last result if reading fails."""

    def __init__(self, read: Callable[[], T | None], clock: Clock = system_clock) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._value: T | None = None
        self._read_at: float | None = None

    def get(self) -> tuple[T | None, float, bool]:
        """Return the result, its age in seconds, and whether the age is at most ``MAX_AGE``."""
        with self._lock:
            if self._read_at is None or self._clock.monotonic() - self._read_at >= MAX_AGE:
                self._refresh()
            if self._read_at is None:
                return None, 0.0, False
            age = self._clock.monotonic() - self._read_at
            return self._value, age, age < MAX_AGE

    def _refresh(self) -> None:
        # The thread of a scrape ends with its response.
        with own_connections():
            try:
                self._value, self._read_at = self._read(), self._clock.monotonic()
            except Exception as error:
                renew(error)
                report("Reading rows for the metrics", error, then="older ones are shown")


class Exporter:
    """Serve ``/metrics`` for one scheduler.

    Raises:
        MetricsUnavailableError: the Prometheus client library is not installed.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.registry = library().CollectorRegistry(auto_describe=False)
        labels = TaskLabels(conf.options().METRICS_MAX_TASK_LABELS)
        self._events = EventMetrics(self.registry, labels)
        self.registry.register(ProcessCollector(scheduler))
        counts = CachedQuery(lambda: read_counts(asked=labels.used), scheduler.clock)
        self.registry.register(DatabaseCollector(counts.get, labels))
        self._scrapes = threading.BoundedSemaphore(MAX_SCRAPES)
        self._listener = Listener({"/metrics": self._page})

    @property
    def port(self) -> int:
        return self._listener.port

    def start(self, host: str, port: int) -> None:
        """Count from now on, and serve until the process ends.

        Raises:
            OSError: the address is not available.
        """
        self._listener.start(host, port)
        self._events.start()

    def stop(self) -> None:
        self._events.stop()

    def _page(self) -> Answer:
        if not self._scrapes.acquire(blocking=False):
            return Answer(HTTPStatus.SERVICE_UNAVAILABLE, b"Too many scrapes.\n", "text/plain")
        try:
            body = library().generate_latest(self.registry)
        finally:
            self._scrapes.release()
        return Answer(HTTPStatus.OK, body, library().CONTENT_TYPE_LATEST)
