"""Spans of OpenTelemetry for ticks and runs; a run carries its trace wherever it is called."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from django_declarative_cron.runtime import tracing

from ...process import run_python
from ..conftest import TIMEOUT
from .conftest import Bench, eventually

HAS_TASKS = find_spec("django.tasks") or find_spec("django_tasks")
HERE = ["thread", "coroutine"]
ELSEWHERE = ["process", *(["django_tasks"] if HAS_TASKS else [])]


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Keep every span that ends in this process."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("ours"))
    return exporter


def ended(spans: InMemorySpanExporter, name: str, trace: object = None) -> Any:
    """Wait for the end of a span, which may come after the row that was written in it."""

    def found() -> list[ReadableSpan]:
        named = [each for each in spans.get_finished_spans() if each.name == name]
        return [each for each in named if trace is None or trace_of(each) == trace]

    (span,) = eventually(found)
    return span


def trace_of(span: Any) -> str:
    return format(span.context.trace_id, "032x")


@pytest.mark.parametrize("bench", HERE, indirect=True)
def test_a_run_is_a_span_beneath_its_tick(spans: InMemorySpanExporter, bench: Bench) -> None:
    row = bench.run("gives_its_trace")
    run = ended(spans, "cron run t")
    tick = ended(spans, "cron tick", trace_of(run))
    assert row.result == trace_of(run)
    assert run.parent.span_id == tick.context.span_id
    said = dict(run.attributes)
    assert str(said.pop("code.function.name")).startswith(
        "tests.runtime.runners.callbacks.gives_its_trace"
    )
    assert said == {
        "faas.trigger": "timer",
        "faas.time": row.scheduled_for.isoformat().replace("+00:00", "Z"),
        "faas.cron": said["faas.cron"],
        "declarative_cron.task": "t",
        "declarative_cron.run": row.pk,
        "declarative_cron.attempt": 1,
        "declarative_cron.reason": "manual",
    }
    assert run.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize("bench", HERE, indirect=True)
def test_a_failure_is_an_error_of_its_span(spans: InMemorySpanExporter, bench: Bench) -> None:
    row = bench.run("fails")
    assert "in traced_run" not in row.traceback
    run = ended(spans, "cron run t")
    assert run.status.status_code is StatusCode.ERROR
    assert run.attributes["error.type"] == "builtins.ValueError"
    assert [event.name for event in run.events] == ["exception"]


class Raises(SpanProcessor):
    """What a project may have set up: it raises wherever it is asked."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        raise RuntimeError("no span begins")

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("no span ends")


def _raise(*given: object) -> None:
    raise RuntimeError("nothing is carried")


@pytest.mark.parametrize("bench", HERE[:1], indirect=True)
@pytest.mark.parametrize("broken", ["processor", "inject", "extract"])
def test_what_tracing_raises_gets_in_the_way_of_no_run(
    spans: InMemorySpanExporter,
    bench: Bench,
    broken: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if broken == "processor":
        provider = TracerProvider()
        provider.add_span_processor(Raises())
        monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("ours"))
    else:
        monkeypatch.setattr(tracing.propagate, broken, _raise)
    row = bench.run("gives_its_trace")
    assert (row.outcome, row.error) == ("succeeded", "")
    assert "what is traced goes on" in caplog.text


@pytest.mark.parametrize("bench", ELSEWHERE, indirect=True)
def test_another_process_goes_on_with_the_trace(spans: InMemorySpanExporter, bench: Bench) -> None:
    row = bench.run("gives_its_trace")
    assert ended(spans, "cron tick", row.result).attributes is not None


WITHOUT = """
import sys
sys.modules["opentelemetry"] = None
import django
django.setup()
from django_declarative_cron.runtime import tracing
from django_declarative_cron.runtime.engine import Engine
assert not tracing.HAS_API
assert not hasattr(Engine._start_due_tasks, "__wrapped__")
assert tracing.carrier() == {}
with tracing.traced_run(None):
    pass
tracing.flush()
"""


@pytest.mark.slow
def test_without_the_library_nothing_is_wrapped(project_environment: dict[str, str]) -> None:
    done = run_python("-c", WITHOUT, env=project_environment, timeout=5 * TIMEOUT)
    assert (done.returncode, done.stderr) == (0, "")
