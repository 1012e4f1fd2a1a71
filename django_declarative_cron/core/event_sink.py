"""Build the envelopes of events for other programs: Open Job Spec and CloudEvents in one.

Open Job Spec requires ``event`` and ``timestamp`` (002 Events), CloudEvents 1.0 ``type``,
``time`` and the rest of its context; both require ``data``. An envelope contains all of them: for
CloudEvents, ``event`` and ``timestamp`` are extension attributes.

002 defines three reasons of ``cron.skipped`` and allows no others. For it, an occurrence that the
follow-up of a run covers is an overlap. An occurrence that no scheduler evaluated was not
skipped, so ``cron.missed`` is an additional type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import singledispatch
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid5

from ..formatting import iso8601
from . import events
from .channels import headers, secrets, url
from .declarations.values import did_you_mean, listed, name_of_key
from .events import Facts
from .readers import MINUTE, TENTH, Reader, duration, read_keys, whole

TYPES: Final = (
    "cron.triggered",
    "cron.skipped",
    "cron.missed",
    "job.enqueued",
    "job.started",
    "job.completed",
    "job.failed",
    "job.retrying",
    "job.discarded",
    "job.cancelled",
)

SKIPPED: Final = {
    "overlap_skip": "overlap_skip",
    "coalesced": "overlap_skip",
    "disabled": "disabled",
    "dst_skip": "dst_skip",
}
"""The reasons for a skipped occurrence, and their names in 002 Events."""

Data = dict[str, Any]
_Envelopes = Iterator[tuple[str, Data]]


def envelopes(event: events.Event) -> list[dict[str, Any]]:
    """Return the envelopes of an event; most events have none."""
    if not isinstance(event, events.TaskEvent) or event.facts is None:
        return []
    facts = event.facts
    return [
        _envelope(kind, event, facts, {k: v for k, v in data.items() if v is not None})
        for kind, data in _told(event, facts)
    ]


def _envelope(kind: str, event: events.TaskEvent, facts: Facts, data: Data) -> dict[str, Any]:
    at = iso8601(event.at)
    # A repeated delivery of an envelope has the same id.
    occurrence = data.get("job_id") or f"{data['reason']}/{data['scheduled_time']}/{at}"
    return {
        "specversion": "1.0",
        "id": str(uuid5(facts.deployment, f"{kind}/{event.task_name}/{occurrence}")),
        "type": kind,
        "event": kind,
        "source": facts.source,
        "subject": data["job_id"] if kind.startswith("job.") else event.task_name,
        "time": at,
        "timestamp": at,
        "datacontenttype": "application/json",
        "data": data,
    }


@singledispatch
def _told(event: events.TaskEvent, facts: Facts) -> _Envelopes:
    """Yield type and data of each envelope; an event without envelopes yields nothing."""
    yield from ()


@_told.register
def _waiting(event: events.TaskRunWaiting, facts: Facts) -> _Envelopes:
    triggered = _triggered(event, facts, facts.run_count, event.at)
    if triggered is not None:
        yield "cron.triggered", triggered
        yield "job.enqueued", triggered | {"queue": facts.queue}


@_told.register
def _started(event: events.TaskRunStarted, facts: Facts) -> _Envelopes:
    triggered = _triggered(event, facts, event.run_count, event.actual_time)
    if triggered is None:
        return
    if event.attempt == 1 and event.waited is None:
        yield "cron.triggered", triggered
    kind = "job.enqueued" if facts.offered else "job.started"
    yield kind, triggered | {"queue": facts.queue, "attempt": event.attempt}


@_told.register
def _fetched(event: events.TaskRunFetched, facts: Facts) -> _Envelopes:
    yield from _of_run(event, facts, ("job.started", {"worker_id": event.worker or None}))


def _triggered(
    event: events.TaskRunStarted | events.TaskRunWaiting,
    facts: Facts,
    run_count: int | None,
    actual_time: datetime,
) -> Data | None:
    if facts.job is None:
        return None
    return _cron(event, facts) | {
        "job_id": str(facts.job),
        "job_type": facts.job_type,
        "run_count": run_count,
        "scheduled_time": iso8601(event.scheduled_time),
        "actual_time": iso8601(actual_time),
        "reason": event.reason,
    }


@_told.register
def _completed(event: events.TaskRunCompleted, facts: Facts) -> _Envelopes:
    yield from _of_run(event, facts, ("job.completed", {"duration_ms": _ms(event.duration)}))


@_told.register
def _failed(event: events.TaskRunFailed, facts: Facts) -> _Envelopes:
    why: Data = {"error": _error(event.error), "max_attempts": event.max_attempts}
    told = [("job.failed", why | {"duration_ms": _ms(event.duration)})]
    if event.next_retry_at is not None:
        told.append(("job.retrying", why | {"next_retry_at": iso8601(event.next_retry_at)}))
    elif event.overtaken or event.history_only:
        reason = "overtaken" if event.overtaken else "changed"
        told.append(("job.discarded", why | {"reason": reason}))
    yield from _of_run(event, facts, *told)


@_told.register
def _exhausted(event: events.TaskRetriesExhausted, facts: Facts) -> _Envelopes:
    why = {
        "error": _error(event.error),
        "reason": event.reason,
        "dead_letter": True if event.ends_as == "dead_letter" else None,
    }
    yield from _of_run(event, facts, ("job.discarded", why))


@_told.register
def _cancelled(event: events.TaskRunCancelled, facts: Facts) -> _Envelopes:
    yield from _of_run(event, facts, ("job.cancelled", {"duration_ms": _ms(event.duration)}))


@_told.register
def _asked_to_end(event: events.TaskRunCancelRequested, facts: Facts) -> _Envelopes:
    if event.waits:
        yield from _of_run(event, facts, ("job.cancelled", {"reason": event.reason}))


@_told.register
def _interrupted(event: events.TaskRunInterrupted, facts: Facts) -> _Envelopes:
    kind = "job.retrying" if event.restarts else "job.cancelled"
    yield from _of_run(event, facts, (kind, {"reason": "interrupted"}))


@_told.register
def _skipped(event: events.TaskSkipped, facts: Facts) -> _Envelopes:
    missed = event.outcome == "missed"
    # All other reasons are decisions of an operator or of the declaration.
    reason = event.reason if missed else SKIPPED.get(event.reason, "disabled")
    first = event.scheduled_from
    blocked = facts.blocked_by if event.reason == "overlap_skip" else None
    data = _cron(event, facts) | {
        "reason": reason,
        "active_job_id": None if blocked is None else str(blocked),
        "scheduled_time": iso8601(event.scheduled_time),
        "scheduled_from": None if first is None else iso8601(first),
        "count": event.count,
        "local_time": event.detail or None,
    }
    yield "cron.missed" if missed else "cron.skipped", data


_OfRun = (
    events.TaskRunCompleted
    | events.TaskRunFailed
    | events.TaskRetriesExhausted
    | events.TaskRunCancelled
    | events.TaskRunCancelRequested
    | events.TaskRunInterrupted
    | events.TaskRunFetched
)


def _of_run(event: _OfRun, facts: Facts, *told: tuple[str, Data]) -> _Envelopes:
    at = facts.scheduled_time
    if facts.job is None or at is None:
        return
    job = _cron(event, facts) | {
        "job_id": str(facts.job),
        "job_type": facts.job_type,
        "queue": facts.queue,
        "attempt": facts.attempt,
        "scheduled_time": iso8601(at),
    }
    for kind, data in told:
        yield kind, job | data


def _cron(event: events.TaskEvent, facts: Facts) -> Data:
    return {
        "cron_name": event.task_name,
        "cron_expression": facts.cron,
        "timezone": facts.timezone,
    }


def _error(line: str) -> Data:
    """Return type and message of an error line; the type only if the line starts with one."""
    kind, colon, words = line.partition(": ")
    if not kind.replace(".", "_").isidentifier():
        return {"message": line}
    return {"type": kind, "message": words if colon else ""}


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


SOURCES: Final[tuple[type[events.TaskEvent], ...]] = tuple(
    kind for kind in _told.registry if kind is not object
)
"""The types of events that have envelopes."""


LONGEST_BACKOFF: Final = timedelta(hours=1)
"""The longest time between two attempts to deliver one event."""

LONGEST_PAUSE: Final = timedelta(minutes=1)
"""The longest pause after a receiver did not answer."""


@dataclass(frozen=True, slots=True)
class Sink:
    """A receiver of events.

    Args:
        url: receives the events by POST.
        secrets: each of them signs.
        events: patterns of the types that are posted, such as ``job.*``.
        timeout: for one request.
        give_up_after: time from the first refusal of an event until it is dead-lettered.
        most: limit of waiting events; beyond it, the oldest are dropped.
        source: URI of the deployment in the events; derived from its identifier if empty.
        headers: sent with each event.
    """

    url: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    events: tuple[str, ...] = ("*",)
    timeout: timedelta = timedelta(seconds=10)
    give_up_after: timedelta = timedelta(days=3)
    most: int = 100_000
    source: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def wants(self, kind: str) -> bool:
        """Return whether events of a type are posted."""
        return any(fnmatchcase(kind, pattern) for pattern in self.events)


def backoff(attempts: int, chance: float, longest: timedelta) -> timedelta:
    """Return the exponential back-off after a number of attempts, from two seconds on."""
    seconds = min(2.0 ** min(attempts, 30), longest.total_seconds())
    return timedelta(seconds=seconds * (0.5 + chance / 2))


def read_sink(given: object) -> Sink:
    """Return the option ``EVENT_SINK``.

    Raises:
        ValueError: it is invalid; the message contains no secret.
    """
    values = read_keys(given, _READERS, "a dict or None")
    if "url" not in values:
        raise ValueError("must have a `url`")
    return Sink(secrets=values.pop("secret", ()), **values)


def remarks(sink: Sink) -> Iterator[str]:
    """Yield warnings about insecure settings."""
    where = urlsplit(sink.url)
    if not sink.secrets:
        yield "posts events without a signature, so they can be forged"
    if where.scheme == "http" and not _is_local(where.hostname or ""):
        yield "posts events over http, so that they can be read on the way"


def _is_local(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.") or "." not in host


def _patterns(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("must be a list of types of events")
    for pattern in value:
        if not isinstance(pattern, str) or not any(fnmatchcase(k, pattern) for k in TYPES):
            tail = did_you_mean(pattern, TYPES) or f"; there are {listed(TYPES)}"
            raise ValueError(f"names no event by {name_of_key(pattern)[:40]!r}{tail}")
    return tuple(value)


def _source(value: Any) -> str:
    is_plain = isinstance(value, str) and value.isascii() and value.isprintable()
    if not is_plain or not value or " " in value:
        raise ValueError("must be a URI")
    return str(value)


_READERS: Final[dict[str, Reader]] = {
    "url": url,
    "secret": secrets,
    "events": _patterns,
    "timeout": duration(TENTH, MINUTE),
    "give_up_after": duration(MINUTE, timedelta(days=365)),
    "most": whole(),
    "source": _source,
    "headers": headers,
}
