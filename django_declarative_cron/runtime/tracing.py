"""Spans of OpenTelemetry for ticks and runs, where its API is installed.

The span of a run is a child of the span of its tick, whichever thread, process or worker calls
it: the run carries the headers that the project's propagators write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

from .. import __version__
from ..signals import report

HAS_API = False
try:
    from opentelemetry import context, propagate, trace
    from opentelemetry.trace import Status, StatusCode

    HAS_API = True
except ImportError:
    pass
except Exception as error:  # For example, propagators that are configured and not installed.
    report("Loading OpenTelemetry", error, then="there are no spans")

if TYPE_CHECKING:
    from .work import Work

FLUSH = 1000
"""Milliseconds in which the process of a run may export its spans before it ends."""

_PREFIX = "declarative_cron."

Method = TypeVar("Method", bound=Callable[..., Any])


def _tracer() -> Any:
    return trace.get_tracer("django_declarative_cron", __version__)


def traced_tick(method: Method) -> Method:
    """Make a span for each call of a method, the span of a tick."""
    if not HAS_API:
        return method

    @wraps(method)
    def traced(*given: Any, **named: Any) -> Any:
        with _traced("cron tick", {}, dict) as span:
            considered = method(*given, **named)
            with _outlived("Writing into a span"):
                span.set_attribute(f"{_PREFIX}considered", considered)
        return considered

    return traced  # type: ignore[return-value]


def carrier() -> dict[str, str]:
    """Return the headers of the current span, empty without one."""
    carried: dict[str, str] = {}
    if HAS_API:
        with _outlived("Passing a span to a run"):
            if trace.get_current_span().get_span_context().is_valid:
                propagate.inject(carried)
    return carried


@contextmanager
def traced_run(work: Work) -> Iterator[None]:
    """Make a span for a run, a child of the span of its tick."""
    if not HAS_API:
        yield
        return
    name = f"cron run {work.run.task_name}"
    with _traced(name, work.trace, partial(_attributes, work)):
        yield


@contextmanager
def _traced(
    name: str, carried: Mapping[str, str], attributes: Callable[[], Mapping[str, Any]]
) -> Iterator[Any]:
    """Make a span for a block; failures of tracing do not reach the block.

    A project's propagators and processors may raise; a committed start is called all the same,
    and its result is that of its callback.
    """
    span: Any = trace.INVALID_SPAN
    token = None
    with _outlived("Beginning a span"):
        parent = propagate.extract(dict(carried)) if carried else context.get_current()
        span = _tracer().start_span(name, context=parent, attributes=attributes())
        token = context.attach(trace.set_span_in_context(span, parent))
    try:
        yield span
    except BaseException as error:
        with _outlived("Writing into a span"):
            kind = type(error)
            span.record_exception(error)
            span.set_attribute("error.type", f"{kind.__module__}.{kind.__qualname__}")
            span.set_status(Status(StatusCode.ERROR, kind.__name__))
        raise
    finally:
        if token is not None:
            context.detach(token)
        with _outlived("Ending a span"):
            span.end()


@contextmanager
def _outlived(doing: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        report(doing, error, then="what is traced goes on")


def flush() -> None:
    """Export the spans of this process before it ends."""
    if not HAS_API:
        return
    with _outlived("Letting spans out"):
        force = getattr(trace.get_tracer_provider(), "force_flush", None)
        if force is not None:
            force(FLUSH)


def _attributes(work: Work) -> Mapping[str, Any]:
    run = work.run
    found = {
        "faas.trigger": "timer",
        "faas.time": run.scheduled_for.isoformat().replace("+00:00", "Z"),
        f"{_PREFIX}task": run.task_name,
        f"{_PREFIX}run": work.id,
        f"{_PREFIX}attempt": run.attempt,
        f"{_PREFIX}reason": run.reason,
    }
    found["process.command_args" if work.target.is_command else "code.function.name"] = (
        work.target.text.split() if work.target.is_command else work.target.text
    )
    if work.declaration is not None:
        found["faas.cron"] = work.declaration.cron
    return found
