"""Metrics: counted by events, collected from memory, and read from the database."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from django_declarative_cron import Scheduler
from django_declarative_cron.core.http_api import Right
from django_declarative_cron.monitoring import metrics
from django_declarative_cron.monitoring.metric_defs import METRICS, OTHER, PREFIX, text_of
from django_declarative_cron.monitoring.metrics import (
    EventMetrics,
    Exporter,
    TaskLabels,
    exposition,
    read_counts,
)
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.signals import SIGNALS
from django_declarative_cron.store import access_tokens
from django_declarative_cron.testing import ManualClock, Simulation

from ..runtime.conftest import Heard
from ..timeouts import TIMEOUT

HERE = "tests.monitoring.callbacks"
HOURLY = "0 * * * *"
DELAY = timedelta(minutes=5)
START = datetime(2024, 1, 1, 10, tzinfo=UTC)


Simulate = Callable[..., Simulation]


@pytest.fixture
def simulate(db: None) -> Iterator[Simulate]:
    """Return a function that makes schedulers on a virtual clock, on 1 January 2024."""
    made: list[Simulation] = []

    def make(*tasks: Any, at: str = "10:00:30", **jobs: Any) -> Simulation:
        sim = Simulation(start=f"2024-01-01T{at}Z")
        made.append(sim)
        hourly = [(name, HOURLY, sim.job(**how), DELAY) for name, how in jobs.items()]
        sim.initialize([*tasks, *hourly])
        return sim

    yield make
    for each in made:
        each.stop()


@pytest.fixture
def counted() -> Iterator[CollectorRegistry]:
    """Return a registry in which events are counted."""
    registry = CollectorRegistry()
    counting = EventMetrics(registry, TaskLabels(3))
    counting.start()
    yield registry
    counting.stop()


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(PREFIX + name, labels)


def totals(registry: CollectorRegistry, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of a counter by the values of its labels."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in registry.collect()
        if family.name == PREFIX + name
        for sample in family.samples
        if sample.name.endswith("_total")
    }


def test_runs_are_counted_by_task_and_outcome(
    counted: CollectorRegistry, simulate: Simulate
) -> None:
    sim = simulate(well={"duration": timedelta(seconds=4)}, ill={"outcomes": ["fail"]})
    sim.advance_to("2024-01-01T10:21:00Z")
    assert totals(counted, "runs") == {("well", "succeeded"): 1, ("ill", "failed"): 5}
    assert value(counted, "run_duration_seconds_sum", task="well") == 4
    sim.advance_to("2024-01-01T12:01:00Z")
    assert value(counted, "run_duration_seconds_sum", task="well") == 12
    assert value(counted, "run_lateness_seconds_count", task="well") == 2
    assert value(counted, "run_lateness_seconds_bucket", task="well", le="0.01") == 2
    assert (value(counted, "tick_duration_seconds_count") or 0) > 2


@pytest.mark.parametrize(("found_at", "late"), [("11:01:00", 0), ("11:01:15", 1)])
def test_a_late_start_is_counted_and_warned_of_once(
    counted: CollectorRegistry,
    simulate: Simulate,
    caplog: pytest.LogCaptureFixture,
    found_at: str,
    late: int,
) -> None:
    sim = simulate(a={})
    sim.advance_to("2024-01-01T10:30:00Z")
    sim.jump_to(f"2024-01-01T{found_at}Z")
    sim.advance_to("2024-01-01T12:30:00Z")
    assert (value(counted, "runs_late_total", task="a") or 0) == late
    warnings = [each.getMessage() for each in caplog.records if "started" in each.getMessage()]
    assert [each for each in warnings if each.endswith("late.")] == [
        "The run of 'a' for 2024-01-01T11:00:00Z started 75 s late."
    ] * late


def test_occurrences_that_did_not_run_are_counted_by_reason(
    counted: CollectorRegistry, simulate: Simulate
) -> None:
    sim = simulate()
    job = sim.job(duration=timedelta(minutes=90))
    slow = {"name": "slow", "cron": HOURLY, "callback": job, "overlap_policy": "skip"}
    sim.initialize([slow, ("away", HOURLY, sim.job(), DELAY)])
    sim.advance_to("2024-01-01T11:30:00Z")
    sim.jump_to("2024-01-01T16:30:00Z")
    # Each occurrence is counted, also if one row stands for several (P99).
    assert totals(counted, "occurrences_not_run") == {
        ("slow", "skipped", "overlap_skip"): 1,
        ("slow", "missed", "held_up"): 4,
        ("away", "missed", "held_up"): 4,
    }


def test_tasks_beyond_the_limit_are_counted_together(
    counted: CollectorRegistry, simulate: Simulate, caplog: pytest.LogCaptureFixture
) -> None:
    sim = simulate(at="10:59:30", **{f"task-{number}": {} for number in range(6)})
    sim.advance_to("2024-01-01T11:00:30Z")
    ended = totals(counted, "runs")
    assert (len(ended), ended[OTHER, "succeeded"]) == (4, 3)
    told = [each for each in caplog.records if "METRICS_MAX_TASK_LABELS" in each.getMessage()]
    assert len(told) == 1


def test_a_task_that_is_gone_gives_its_label_to_another(simulate: Simulate) -> None:
    registry, labels = CollectorRegistry(), TaskLabels(2)
    counting = EventMetrics(registry, labels)
    counting.start()
    sim = simulate(at="10:59:30", a={}, b={}, c={})
    sim.advance_to("2024-01-01T11:00:30Z")
    assert value(registry, "runs_total", task="c", outcome="succeeded") is None
    sim.initialize([(each, HOURLY, sim.job(), DELAY) for each in "bc"])
    counts = read_counts(sim.clock, labels.used)
    list(metrics.DatabaseCollector(lambda: (counts, 0.0, True), labels).collect())
    sim.advance_to("2024-01-01T12:00:30Z")
    for name in ("runs_total", "run_duration_seconds_count", "run_lateness_seconds_count"):
        outcome = {"outcome": "succeeded"} if name == "runs_total" else {}
        found = [value(registry, name, task=each, **outcome) for each in "abc"]
        assert found[0] is None
        assert found[1:] == [found[1], 1]
        assert (found[1] or 0) >= 2
    assert sorted(labels.used) == ["b", "c"]
    counting.stop()


def samples(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def test_metrics_of_the_deployment_and_of_each_task(simulate: Simulate) -> None:
    sim = simulate(well={}, ill={"outcomes": ["fail"]})
    sim.advance_to("2024-01-01T11:06:00Z")
    found = samples(exposition(read_counts(sim.clock))[0].decode())
    assert found[PREFIX + "has_leader"] == [({}, 1)]
    assert found[PREFIX + "term"] == [({}, 1)]
    by_status = {labels["status"]: number for labels, number in found[PREFIX + "tasks"]}
    assert (by_status["active"], by_status["retrying"], by_status["overdue"]) == (1, 1, 0)
    failing = {each["task"]: n for each, n in found[PREFIX + "task_failures_in_row"]}
    assert failing == {"well": 0, "ill": 14}
    starts = {each["task"]: n for each, n in found[PREFIX + "task_starts_total"]}
    assert starts == {"well": 2, "ill": 14}
    ended = {each["outcome"]: n for each, n in found[PREFIX + "ended_last_hour"]}
    assert (ended["succeeded"], ended["failed"]) == (1, 12)


def test_tags_are_reported_only_if_asked_for_and_up_to_the_limit(
    simulate: Simulate, settings: Any, django_assert_num_queries: Any
) -> None:
    sim = simulate()
    keys = {"cron": HOURLY, "callback": sim.job(), "retry_delay": DELAY}
    tags = {"a": ["mail", "money"], "b": ["mail", "zoo"], "c": ["zoo", "zebra"]}
    sim.initialize([{"name": name, "tags": each, **keys} for name, each in tags.items()])

    def found() -> set[tuple[str, str]]:
        shown = samples(exposition(read_counts(sim.clock))[0].decode())
        return {(each["task"], each["tag"]) for each, _ in shown.get(PREFIX + "task_tag", [])}

    assert found() == set()
    settings.DECLARATIVE_CRON = {"METRICS_TAGS": True}
    everything = {(name, tag) for name, each in tags.items() for tag in each}
    assert found() == everything
    counts = read_counts(sim.clock)
    with django_assert_num_queries(0):
        exposition(counts)
    # The third task has no label of its own, and two tags have one.
    settings.DECLARATIVE_CRON = {"METRICS_TAGS": True, "METRICS_MAX_TASK_LABELS": 2}
    assert found() == {("a", "mail"), ("a", "money"), ("b", "mail"), ("b", OTHER)}


@pytest.mark.django_db
def test_before_the_first_scheduler_only_the_scrape_is_reported() -> None:
    found = samples(exposition(read_counts())[0].decode())
    assert list(found) == [PREFIX + "scrape_database_success"]


def scraped(port: int) -> dict[str, list[tuple[dict[str, str], float]]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return samples(answer.read().decode())


def test_a_scheduler_answers_prometheus_with_every_metric(
    scheduler: Scheduler, heard: Heard, settings: Any
) -> None:
    sink = {"url": "https://hooks.example.org/a"}
    settings.DECLARATIVE_CRON = {"EVENT_SINK": sink, "METRICS_TAGS": True}
    served = Exporter(scheduler)
    served.start("127.0.0.1", 0)
    try:
        entry = {"name": "well", "cron": "0 0 29 2 *", "callback": f"{HERE}.well"}
        scheduler.initialize([{**entry, "tags": ["money"]}])
        heard.wait_for("LeadershipGained")
        found = scraped(served.port)
    finally:
        served.stop()
    assert found[PREFIX + "leading"] == [({}, 1)]
    assert found[PREFIX + "declared_tasks"] == [({}, 1)]
    assert found[PREFIX + "results_waiting"] == [({}, 0)]
    assert {labels["runner"] for labels, _ in found[PREFIX + "pool_size"]} >= {"thread", "process"}
    names = {name.removesuffix("_count") for name in found}
    # Metrics of tasks and outcomes appear with the first event.
    silent = {PREFIX + "task_last_success_timestamp_seconds"}
    expected = {each.exposed for each in METRICS if each.source != "events"} - silent
    assert expected - names == set()


@pytest.mark.django_db
def test_if_the_database_fails_the_last_values_are_served(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(metrics, "own_connections", nullcontext)
    clock, answers = ManualClock(START), ["first"]
    query = metrics.CachedQuery(lambda: answers.pop(), clock)
    assert query.get() == ("first", 0.0, True)
    clock.advance(START + timedelta(seconds=4))
    assert query.get() == ("first", 4.0, True)
    clock.advance(START + timedelta(seconds=8))
    assert query.get() == ("first", 8.0, False)
    assert "Reading rows for the metrics failed" in caplog.text
    answers.append("second")
    assert query.get() == ("second", 0.0, True)


def test_one_scrape_reads_for_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "own_connections", nullcontext)
    reads, may_end, clock = list[int](), threading.Event(), ManualClock(START)

    def read() -> int:
        reads.append(1)
        assert may_end.wait(TIMEOUT)
        return len(reads)

    query = metrics.CachedQuery(read, clock)
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(query.get) for _ in range(4)]
        may_end.set()
        assert {each.result(TIMEOUT) for each in found} == {(1, 0.0, True)}


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    words = r'install "django-declarative-cron\[metrics\]"'
    with pytest.raises(metrics.MetricsUnavailableError, match=words):
        metrics.Exporter(None)  # type: ignore[arg-type]


def test_the_command_prints_the_metrics(
    simulate: Simulate, capsys: pytest.CaptureFixture[str]
) -> None:
    simulate(well={})
    call_command("cron", "metrics")
    assert PREFIX + "task_starts_total" in samples(capsys.readouterr().out)
    call_command("cron", "metrics", "--format", "json")
    told = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    starts = told[PREFIX + "task_starts"]
    assert starts["kind"] == "counter"
    assert starts["samples"] == [{"labels": {"task": "well"}, "value": 1.0}]


def test_the_files_are_printed_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("alerts", "dashboard"):
        call_command("cron", "metrics", "--file", name)
        assert capsys.readouterr().out == text_of(name)
    with pytest.raises(CommandError):
        call_command("cron", "metrics", "--file", "nothing")
    with pytest.raises(CommandError, match="has a format of its own"):
        call_command("cron", "metrics", "--format", "json", "--file", "alerts")


def test_without_an_exporter_nothing_is_counted() -> None:
    polled = SIGNALS["poll_completed"].receivers
    assert not any("metrics" in repr(each) for each in polled)


# --- the view ---


@pytest.fixture
def view(settings: Any, db: None) -> Client:
    settings.ROOT_URLCONF = "tests.monitoring.urls"
    cache.clear()
    return Client()


def test_the_view_requires_a_permission(view: Client) -> None:
    assert view.get("/metrics").status_code == 401
    user = User.objects.create_user("ada", is_staff=True)
    view.force_login(user)
    assert view.get("/metrics").status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="view_scheduledtask"))
    answer = view.get("/metrics")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=")
    assert view.post("/metrics").status_code == 405


def test_prometheus_may_use_a_token(view: Client, simulate: Simulate) -> None:
    simulate(well={})
    now = system_clock.now()
    reads = access_tokens.create("prometheus", [Right.READ], now)
    works = access_tokens.create("worker", [Right.WORK], now)
    answer = view.get("/metrics", headers={"authorization": f"Bearer {reads}"})
    assert PREFIX + "task_starts_total" in samples(answer.content.decode())
    newer = {"authorization": f"Bearer {reads}", "accept": "application/openmetrics-text"}
    assert view.get("/metrics", headers=newer).content.endswith(b"# EOF\n")
    refused = view.get("/metrics", headers={"authorization": f"Bearer {works}"})
    assert refused.status_code == 403


def test_a_port_in_use_is_an_error(scheduler: Scheduler) -> None:
    served = Exporter(scheduler)
    served.start("127.0.0.1", 0)
    with pytest.raises(OSError, match="in use"):
        Exporter(scheduler).start("127.0.0.1", served.port)
    served.stop()
