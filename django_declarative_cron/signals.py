"""Publish events after commit: as Django signals and as log records.

There is one signal for every event of ``core.events``, named in snake case
(``TaskRunStarted`` is ``signals.task_run_started``). Receivers get the event's
fields as keyword arguments, and the event itself as ``event``::

    @receiver(signals.task_run_failed)
    def alert(sender, task_name, error, **kwargs): ...

The events for other programs have signals too: ``cron_triggered``, ``cron_skipped``,
``job_completed`` and so on, one for each type of ``core.event_sink``. Their receivers get the
``envelope``, its ``data``, and the ``event`` that it is made of.

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
from .core.event_sink import SOURCES, TYPES, envelopes
from .core.tracebacks import traceback_of
from .exceptions import class_of, safe, words_of
from .formatting import camel, iso8601

logger = logging.getLogger("django_declarative_cron")

_LEVELS = logging.getLevelNamesMapping()
_LONGEST_TRACEBACK = 64 * 1024
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

SIGNALS: Mapping[str, Signal] = {
    _HUMP.sub("_", event.__name__).lower(): Signal() for event in events.ALL
}

EXTERNAL_SIGNALS: Mapping[str, Signal] = {kind.replace(".", "_"): Signal() for kind in TYPES}

_BY_TYPE = dict(zip(TYPES, EXTERNAL_SIGNALS.values(), strict=True))
_BY_EVENT = dict(zip(events.ALL, SIGNALS.values(), strict=True))


def _escape(record: logging.LogRecord) -> bool:
    """Escape control characters in the values of a log line and in its traceback."""
    if isinstance(record.args, tuple):
        record.args = tuple(safe(each) if isinstance(each, str) else each for each in record.args)
    if record.exc_info and not record.exc_text:
        # A formatter takes this text instead of formatting the exception itself.
        record.exc_text = safe(_TRACEBACK.formatException(record.exc_info), keep="\n")
    return True


_TRACEBACK = logging.Formatter()
logger.addFilter(_escape)


_NAMES: Mapping[type[events.Event], tuple[tuple[str, str], ...]] = {
    event: tuple((each.name, camel(each.name)) for each in fields(event) if each.name != "facts")
    for event in events.ALL
}


def __getattr__(name: str) -> Signal:
    found = SIGNALS.get(name) or EXTERNAL_SIGNALS.get(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no signal {name!r}")
    return found


def signal_of(kind: type[events.Event]) -> Signal:
    """Return the signal of a type of event."""
    return _BY_EVENT[kind]


def publish(published: Iterable[events.Event]) -> None:
    """Send signals and write log records for committed events, in their order.

    The exception of a receiver is logged; the other receivers get the event all the same.
    """
    for event in published:
        _send(event)
        _log(event)
        if isinstance(event, events.TaskRunStarted) and event.is_late:
            seconds = event.lateness.total_seconds() if event.lateness is not None else 0.0
            at = event.scheduled_time
            log_line("late_start", task=event.task_name, scheduled=at, seconds=seconds)


def is_heard(kind: type[events.Event]) -> bool:
    """Return whether a type of event has receivers or is logged, and so has to be made."""
    if _BY_EVENT[kind].receivers or logger.isEnabledFor(_LEVELS[kind.level]):
        return True
    return issubclass(kind, SOURCES) and is_sent_outside()


def publish_on_commit(published: Iterable[events.Event], using: str) -> None:
    """Publish events as soon as the current transaction is committed."""
    transaction.on_commit(partial(publish, list(published)), using=using, robust=True)


def as_record(event: events.Event) -> dict[str, Any]:
    """Return an event as the log event contract spells it: camel case, ISO 8601, plain."""
    return {camel: _plain(getattr(event, name)) for name, camel in _NAMES[type(event)]}


def _send(event: events.Event) -> None:
    signal = _BY_EVENT[type(event)]
    if signal.receivers:
        values = {name: getattr(event, name) for name, _ in _NAMES[type(event)]}
        _to_all(signal, event, values)
    if getattr(event, "facts", None) is not None and is_sent_outside():
        for envelope in envelopes(event):
            values = {"envelope": envelope, "data": envelope["data"]}
            _to_all(_BY_TYPE[envelope["type"]], event, values)


def is_sent_outside() -> bool:
    """Return whether any signal for other programs has a receiver."""
    return any(signal.receivers for signal in EXTERNAL_SIGNALS.values())


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
    # ``extra`` refuses ``taskName``, an attribute of each record since Python 3.12.
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


# Log lines that are no events, each with the level and the template of its values.
_LINES: Mapping[str, tuple[int, str]] = {
    "database_recovered": (
        logging.INFO,
        "The database answers again after %(refusals)s in %(seconds).0f s.",
    ),
    "label_limit": (
        logging.WARNING,
        "The metrics have labels for %(limit)d tasks; the others are counted as 'other'. "
        "Raise METRICS_MAX_TASK_LABELS to distinguish them.",
    ),
    "late_start": (
        logging.WARNING,
        "The run of %(task)r for %(scheduled)s started %(seconds).0f s late.",
    ),
    "no_worker": (
        logging.WARNING,
        "%(runs)d run(s) wait in the engine's queue, the first for %(seconds).0f s: "
        "is a worker at work?",
    ),
    "pool_exhausted": (
        logging.WARNING,
        "A run has waited %(seconds).1f s for a free %(runner)s: %(busy)d of %(size)d are busy, "
        "%(queued)d more wait. Runs start late; raise WORKERS, or let runs take less time.",
    ),
    "slow_tick": (
        logging.WARNING,
        "A tick of the scheduler took %(seconds).1f s: runs that fell due meanwhile start late. "
        "It waited for the database, for a receiver of a signal, or for the processor.",
    ),
    "stuck_thread": (
        logging.ERROR,
        "Run %(run)d of %(task)r was asked to end %(seconds).0f s ago and has not: its thread "
        "cannot be ended. Another thread takes its place; the task is not started while the "
        "run lives.",
    ),
    "zones_updated": (
        logging.INFO,
        "The time zone database was updated; every schedule follows it.",
    ),
}


def log_line(name: str, **values: Any) -> None:
    """Log one of the lines that report no event; never raise."""
    level, template = _LINES[name]
    plain = {key: _plain(value) for key, value in values.items()}
    with suppress(Exception):
        logger.log(level, template, *([plain] if plain else []))


def report(doing: str, error: BaseException, then: str = "it is tried again") -> None:
    """Log a failure that does not end the scheduler, with its traceback the first time.

    A failure that repeats is logged at intervals that double up to one minute.
    """
    _log_failure(f"{doing} failed; {then}", error)


@dataclass(slots=True)
class _Repeated:
    """The log lines of one kind of failure, and the failures since the last line."""

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
            # Handlers use this text instead of formatting a traceback of any length.
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
    """Return the line of code that raised, which distinguishes kinds of failures."""
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
