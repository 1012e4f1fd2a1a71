"""Publishing events after commit: Django signals, and the one place that words a log line.

There is one signal for every event of ``core.events``, named in snake case
(``TaskRunStarted`` is ``signals.task_run_started``). Receivers get the event's
fields as keyword arguments, and the event itself as ``event``::

    @receiver(signals.task_run_failed)
    def tell(sender, task_name, error, **kwargs): ...

What other programs are told has signals too: ``cron_triggered``, ``cron_skipped``,
``job_completed`` and so on, one for each type of ``core.event_sink``. Their receivers get the
``envelope``, its ``data``, and our ``event`` that it is made of.

The same fields go to the logger ``django_declarative_cron`` with the names of the
log event contract (003 Logging & Event Contract), as attributes of the record.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.dispatch import Signal

from .core import events
from .core.backoff import Backoff
from .core.event_sink import TELLING, TYPES, envelopes
from .core.tracebacks import traceback_of
from .exceptions import class_of, safe, words_of
from .formatting import iso8601

logger = logging.getLogger("django_declarative_cron")

_LEVELS = logging.getLevelNamesMapping()
_LONGEST_TRACEBACK = 64 * 1024
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

SIGNALS: Mapping[str, Signal] = {
    _HUMP.sub("_", event.__name__).lower(): Signal() for event in events.ALL
}

TOLD_OUTSIDE: Mapping[str, Signal] = {kind.replace(".", "_"): Signal() for kind in TYPES}

_BY_TYPE = dict(zip(TYPES, TOLD_OUTSIDE.values(), strict=True))
_BY_EVENT = dict(zip(events.ALL, SIGNALS.values(), strict=True))


def _escape(record: logging.LogRecord) -> bool:
    """Escape what comes from data in a log line and in the traceback below it."""
    if isinstance(record.args, tuple):
        record.args = tuple(safe(each) if isinstance(each, str) else each for each in record.args)
    if record.exc_info and not record.exc_text:
        # A formatter takes this text instead of formatting the exception itself.
        record.exc_text = safe(_TRACEBACK.formatException(record.exc_info), keep="\n")
    return True


_TRACEBACK = logging.Formatter()
logger.addFilter(_escape)


def camel(name: str) -> str:
    """Spell a field as the log event contract does.

    Args:
        name: in snake case.
    """
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


_NAMES: Mapping[type[events.Event], tuple[tuple[str, str], ...]] = {
    event: tuple((each.name, camel(each.name)) for each in fields(event) if each.name != "facts")
    for event in events.ALL
}


def __getattr__(name: str) -> Signal:
    found = SIGNALS.get(name) or TOLD_OUTSIDE.get(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no signal {name!r}")
    return found


def signal_of(kind: type[events.Event]) -> Signal:
    """Give the signal of a type of event.

    Args:
        kind: one of ``events.ALL``.
    """
    return _BY_EVENT[kind]


def publish(told: Iterable[events.Event]) -> None:
    """Send signals and write log lines for events, in their order.

    A receiver that raises is logged and stops nobody.

    Args:
        told: events that are committed.
    """
    for event in told:
        _send(event)
        _log(event)
        if isinstance(event, events.TaskRunStarted) and event.is_late:
            _tell_late_start(event)


def is_heard(kind: type[events.Event]) -> bool:
    """Tell whether anybody receives a type of event, or reads of it in a log.

    Args:
        kind: one of ``events.ALL``; where nobody does, it need not be made.
    """
    if _BY_EVENT[kind].receivers or logger.isEnabledFor(_LEVELS[kind.level]):
        return True
    return issubclass(kind, TELLING) and is_heard_outside()


def publish_on_commit(told: Iterable[events.Event], using: str) -> None:
    """Publish events once the transaction around them is committed.

    Args:
        told: events of this transaction.
        using: database alias.
    """
    transaction.on_commit(partial(publish, list(told)), using=using, robust=True)


def as_record(event: events.Event) -> dict[str, Any]:
    """Give an event as the log event contract spells it: camel case, ISO 8601, plain.

    Args:
        event: any event.
    """
    return {camel: _plain(getattr(event, name)) for name, camel in _NAMES[type(event)]}


def _send(event: events.Event) -> None:
    signal = _BY_EVENT[type(event)]
    if signal.receivers:
        values = {name: getattr(event, name) for name, _ in _NAMES[type(event)]}
        _to_all(signal, event, values)
    if getattr(event, "facts", None) is not None and is_heard_outside():
        for envelope in envelopes(event):
            values = {"envelope": envelope, "data": envelope["data"]}
            _to_all(_BY_TYPE[envelope["type"]], event, values)


def is_heard_outside() -> bool:
    """Tell whether anybody receives what other programs are told."""
    return any(signal.receivers for signal in TOLD_OUTSIDE.values())


def _to_all(signal: Signal, event: events.Event, values: Mapping[str, Any]) -> None:
    for receiver, response in signal.send_robust(sender=type(event), event=event, **values):
        if isinstance(response, Exception):
            _log_failure(f"A receiver of {type(event).__name__} raised: {receiver!r}", response)


def _log(event: events.Event) -> None:
    level = _LEVELS[event.level]
    if not logger.isEnabledFor(level):
        return
    name, values = type(event).__name__, as_record(event)
    words = " ".join(f"{key}={_word(value)}" for key, value in values.items() if value is not None)
    record = logger.makeRecord(logger.name, level, __file__, 0, "%s %s", (name, words), None)
    # Not by ``extra``: since Python 3.12 a record has a ``taskName`` of its own there.
    record.__dict__.update(values, event=name)
    # A handler of the project that raises must not keep tasks from running.
    with suppress(Exception):
        logger.handle(record)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso8601(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, str):
        return safe(value)
    if isinstance(value, Mapping):
        return {camel(safe(str(key))): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _tell_late_start(event: events.TaskRunStarted) -> None:
    seconds = event.lateness.total_seconds() if event.lateness is not None else 0.0
    with suppress(Exception):
        logger.warning(
            "The run of %r for %s started %.0f s late.",
            *(safe(event.task_name), _plain(event.scheduled_time), seconds),
        )


def tell_recovery(failures: int, seconds: float) -> None:
    """Say that the database answers again.

    Args:
        failures: how often it refused.
        seconds: since the first refusal.
    """
    times = "1 refusal" if failures == 1 else f"{failures} refusals"
    with suppress(Exception):
        logger.info("The database answers again after %s in %.0f s.", times, seconds)


def tell_starvation(runner: str, size: int, busy: int, queued: int, waited: float) -> None:
    """Say that runs start late because others are being called.

    Args:
        runner: name of the runner.
        size: how many runs it calls at the same time.
        busy: how many it calls.
        queued: how many wait.
        waited: seconds that the first of them has waited.
    """
    with suppress(Exception):
        logger.warning(
            "A run has waited %.1f s for a free %s: %d of %d are busy, %d more wait. "
            "Runs start late; raise WORKERS, or let runs take less time.",
            *(waited, runner, busy, size, queued),
        )


def tell_slow_pass(seconds: float) -> None:
    """Say that one pass of the loop took so long that others come late.

    Args:
        seconds: how long it took.
    """
    with suppress(Exception):
        logger.warning(
            "A pass of the scheduler took %.1f s: what fell due meanwhile starts late. "
            "It waited for the database, for a receiver of a signal, or for the processor.",
            seconds,
        )


def tell_stuck(task_name: str, run: int, patience: float) -> None:
    """Say that a run in a thread does not end, and that another thread takes its thread's place.

    Args:
        task_name: of the task.
        run: id of its row.
        patience: seconds since it was asked to end.
    """
    with suppress(Exception):
        logger.error(
            "Run %d of %r was asked to end %.0f s ago and has not: its thread cannot be ended. "
            "Another thread takes its place; the task is not started while the run lives.",
            *(run, task_name, patience),
        )


def tell_quiet(runs: int, waited: float) -> None:
    """Say that nobody takes up runs that were handed to an engine.

    Args:
        runs: how many wait.
        waited: seconds that the first of them has waited.
    """
    with suppress(Exception):
        logger.warning(
            "%d run(s) wait in the engine's queue, the first for %.0f s: is a worker at work?",
            *(runs, waited),
        )


def tell_other(most: int) -> None:
    """Say that the metrics count further tasks together.

    Args:
        most: how many have a label of their own.
    """
    with suppress(Exception):
        logger.warning(
            "The metrics have labels for %d tasks; the others are counted as 'other'. "
            "Raise METRICS_MAX_TASK_LABELS to tell them apart.",
            most,
        )


def report_zones() -> None:
    """Say that another time zone database is followed from now on."""
    with suppress(Exception):
        logger.info("The time zone database was updated; every schedule follows it.")


def report(doing: str, error: BaseException, then: str = "it is tried again") -> None:
    """Log a failure that the scheduler outlives, with its traceback the first time.

    A failure that repeats is logged at intervals that double to a minute.

    Args:
        doing: what failed.
        error: why.
        then: how it goes on.
    """
    _log_failure(f"{doing} failed; {then}", error)


@dataclass(slots=True)
class _Repeated:
    """A kind of failure: how often it is logged, and how often it was not since then."""

    backoff: Backoff = field(default_factory=Backoff)
    unlogged: int = 0


_MOST_KINDS = 200
_repeated: dict[Hashable, _Repeated] = {}
_repeated_lock = threading.Lock()


def _log_failure(text: str, error: BaseException) -> None:
    with suppress(Exception):
        if not logger.isEnabledFor(logging.ERROR):
            return
        raised = (type(error), error, error.__traceback__)
        record = logger.makeRecord(logger.name, logging.ERROR, __file__, 0, "%s", (text,), raised)
        line, unlogged = _line_of((text, type(error), _place(error)), record.created)
        if line > 1:
            record.exc_info = None
            words = f"{class_of(error)}: {words_of(error)}"
            record.args = (f"{text}: {words} ({unlogged + 1} times since the last line)",)
        elif line:
            # Handlers format a traceback only where there is none, and this one is bounded.
            record.exc_text = safe(traceback_of(error, _LONGEST_TRACEBACK), keep="\n")
        if line:
            logger.handle(record)


def _line_of(kind: Hashable, at: float) -> tuple[int, int]:
    """Return the number of the line of a failure, and how many were not logged before it."""
    with _repeated_lock:
        if len(_repeated) >= _MOST_KINDS:
            _repeated.clear()
        known = _repeated.setdefault(kind, _Repeated())
        line, unlogged = known.backoff.line(at), known.unlogged
        known.unlogged = 0 if line else unlogged + 1
        return line, unlogged


def _place(error: BaseException) -> tuple[str, int]:
    """Return the line of code that raised: another line is another kind of failure."""
    frame = error.__traceback__
    if frame is None:
        return "", 0
    while frame.tb_next is not None:
        frame = frame.tb_next
    return frame.tb_frame.f_code.co_filename, frame.tb_lineno


def _word(value: Any) -> str:
    if isinstance(value, str) and value and " " not in value and '"' not in value:
        return value
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    return json.dumps(value, ensure_ascii=False, default=str)
