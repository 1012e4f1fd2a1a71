"""The endpoints of external workers (fetch, ack, nack, heartbeat) and of single jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from ..conf import options
from ..core import events
from ..exceptions import shortened
from ..formatting import iso8601
from ..models import Outcome, TaskRun
from ..runtime.clock import system_clock
from ..runtime.outcome import TRACEBACK_LENGTH, escaped, worded
from ..store import external_jobs
from ..store.external_jobs import Claimant, NoJobError, Report, StateError
from ..store.outbox import name_of
from ..store.posted_tasks import OwnedError
from ..store.sentences import masked
from ..store.status import shown_end, shown_outcome
from .authentication import Caller
from .cron import owned
from .parsing import read_object
from .responses import RefusedError, invalid, not_found, respond

_MAX_ITEMS: Final = 100
_MAX_MILLISECONDS: Final = 24 * 60 * 60 * 1000
_STATE_KEYS: Final = ("id", "state", "attempt", "cancel_requested", "started_at", "completed_at")
_STATES: Final = {
    Outcome.WAITING: "available",
    Outcome.RUNNING: "active",
    Outcome.SUCCEEDED: "completed",
    Outcome.CANCELLED: "cancelled",
    Outcome.INTERRUPTED: "retryable",
}


def fetch(request: HttpRequest, caller: Caller) -> HttpResponse:
    body = _body(request)
    queues = _texts(body, "queues", ["default"])
    count = _integer(body, "count" if "count" in body else "max_jobs", 1, 1, _MAX_ITEMS)
    found = external_jobs.fetch(
        list(dict.fromkeys(queues)),
        count,
        _text(body, "worker_id"),
        _visibility_timeout(body),
        system_clock.database_time(),
    )
    return respond(request, {"jobs": [serialize(run) for run in found]})


def ack(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Record the success of a job."""
    body = _body(request)
    run, _ = _end(body, Report(value=body.get("result")))
    answer = {
        "acknowledged": True,
        "job_id": _id(run),
        "state": _state(run),
        "completed_at": iso8601(run.finished_at),
    }
    return respond(request, answer)


def nack(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Record the failure of a job; the retry policy of its task decides about a retry."""
    body = _body(request)
    run, event = _end(body, _report(body.get("error")))
    retry_at = event.next_retry_at if isinstance(event, events.TaskRunFailed) else None
    is_cancelled = run.outcome == Outcome.CANCELLED
    state = "cancelled" if is_cancelled else "retryable" if retry_at else "discarded"
    answer = {
        "acknowledged": True,
        "job_id": _id(run),
        "state": state,
        "attempt": run.attempt,
        "max_attempts": (run.job or {}).get("max_attempts"),
        "next_attempt_at": iso8601(retry_at),
    }
    if state == "discarded":
        answer["discarded_at"] = iso8601(run.finished_at)
    return respond(request, answer)


def _report(error: Any) -> Report:
    if not isinstance(error, dict):
        raise invalid("`error` must be an object with `code` and `message`.", field="error")
    code = error.get("code", error.get("type", "handler_error"))
    message = error.get("message", "")
    if not isinstance(code, str) or not isinstance(message, str) or not code:
        raise invalid("`error.code` and `error.message` must be texts.", field="error")
    retryable = error.get("retryable", True)
    if not isinstance(retryable, bool):
        raise invalid("`error.retryable` must be true or false.", field="error.retryable")
    details = error.get("details")
    return Report(
        error=worded(f"{code}: {message}"),
        names=(code,),
        trace="" if details is None else shortened(escaped(str(details)), TRACEBACK_LENGTH),
        is_final=not retryable,
    )


def heartbeat(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Extend the reservation of jobs, and return those that the worker should cancel."""
    body = _body(request)
    jobs = _texts(body, "active_jobs", [])
    if "job_id" in body:
        jobs = [*jobs, _text(body, "job_id")]
    reservations = _texts(body, "reservations", [])
    if "reservation" in body:
        reservations = [*reservations, _text(body, "reservation")]
    claims = [_reservation(text, "reservations") for text in reservations]
    claimant = Claimant(claims, _text(body, "worker_id"))
    timeout = _visibility_timeout(body)
    kept = external_jobs.extend(jobs, claimant, timeout, system_clock.database_time())
    answer = {
        "state": "running",
        "directive": "continue",
        "jobs_extended": [_id(run) for run in kept],
        "jobs_to_cancel": [_id(run) for run in kept if run.cancel_requested_at is not None],
        "server_time": iso8601(system_clock.now()),
    }
    return respond(request, answer)


def show(request: HttpRequest, caller: Caller, job: str) -> HttpResponse:
    """Return one job, which is any run of the deployment."""
    with _translated_errors(job, "show"):
        return respond(request, {"job": _public(external_jobs.find(job))})


def cancel(request: HttpRequest, caller: Caller, job: str) -> HttpResponse:
    """Cancel a waiting job, or ask the worker of an active one to end it."""
    with _translated_errors(job, "cancel"):
        run = external_jobs.cancel(job, caller.act(), system_clock.database_time())
    shown = _public(run)
    if not caller.may_read:
        shown = {key: shown[key] for key in _STATE_KEYS}
    return respond(request, {"job": shown})


def _public(run: TaskRun) -> dict[str, Any]:
    """Return a run without its reservation and with masked secrets."""
    job = serialize(run)
    job.pop("reservation", None)
    return {**job, "args": masked(job["args"]), "meta": masked(job["meta"])}


def serialize(run: TaskRun) -> dict[str, Any]:
    """Return a run as a job of Open Job Spec, for its worker."""
    job, now = run.job or {}, system_clock.now()
    triggered = iso8601(run.scheduled_for)
    meta = {**job.get("meta", {}), "cron_name": run.task_name, "cron_triggered_at": triggered}
    found = {
        "specversion": "1.0",
        "id": _id(run),
        "type": job.get("type", run.task_name),
        "queue": job.get("queue", "default"),
        "args": job.get("args", []),
        "meta": meta,
        "tags": job.get("tags", []),
        "priority": 0,
        "state": _state(run, shown_outcome(run, now)),
        "attempt": run.attempt,
        "max_attempts": job.get("max_attempts"),
        "created_at": triggered,
        "enqueued_at": triggered,
        "started_at": iso8601(run.started_at),
        "completed_at": iso8601(shown_end(run, now)),
        "cancel_requested": run.cancel_requested_at is not None,
    }
    if job.get("timeout") is not None:
        found["timeout_ms"] = round(job["timeout"] * 1000)
    if run.outcome == Outcome.RUNNING and run.reservation is not None:
        found["reservation"] = str(run.reservation)
        found["reserved_until"] = iso8601(run.reserved_until)
    if run.error:
        found["error"] = {"code": run.error.partition(":")[0], "message": run.error}
    return found


def _end(body: dict[str, Any], report: Report) -> tuple[TaskRun, events.Event | None]:
    job = _text(body, "job_id")
    if not job:
        raise invalid("`job_id` is missing.", field="job_id")
    reservation = _reservation(_text(body, "reservation"), "reservation")
    claimant = Claimant([reservation], _text(body, "worker_id"))
    with _translated_errors(job, "end"):
        return external_jobs.end(job, claimant, report, system_clock.database_time())


@contextmanager
def _translated_errors(job: str, verb: str) -> Iterator[None]:
    try:
        yield
    except NoJobError:
        raise not_found("job", job, "There is no job {!r}.") from None
    except OwnedError as error:
        raise owned(error) from None
    except StateError as error:
        state = _state(error.run)
        message = f"Cannot {verb} this job: it is {state}, or reserved by another worker."
        details = {"job_id": _id(error.run), "current_state": state}
        raise RefusedError(409, "invalid_request", message, details=details) from None


def _body(request: HttpRequest) -> dict[str, Any]:
    if not options().EXTERNAL_WORKERS:
        message = 'External workers are off: DECLARATIVE_CRON["EXTERNAL_WORKERS"] turns them on.'
        raise RefusedError(422, "unsupported", message)
    return read_object(request)


def _text(body: dict[str, Any], key: str) -> str:
    value = body.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > 255:
        raise invalid(f"`{key}` must be a text of at most 255 characters.", field=key)
    return value


def _texts(body: dict[str, Any], key: str, default: list[str]) -> list[str]:
    value = body.get(key, default)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise invalid(f"`{key}` must be a list of texts.", field=key)
    if len(value) > _MAX_ITEMS:
        raise invalid(f"`{key}` must have at most {_MAX_ITEMS} entries.", field=key)
    return value


def _integer(body: dict[str, Any], key: str, default: int, least: int, most: int) -> int:
    value = body.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise invalid(f"`{key}` must be a number from {least} to {most}.", field=key)
    return value


def _visibility_timeout(body: dict[str, Any]) -> timedelta:
    key = "visibility_timeout_ms"
    if body.get(key) is None:
        return options().VISIBILITY_TIMEOUT
    return timedelta(milliseconds=_integer(body, key, 0, 1000, _MAX_MILLISECONDS))


def _reservation(text: str, field: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        flaw = "invalid" if text else "missing"
        message = f"`{field}` is {flaw}: send the value that came with the job."
        raise invalid(message, field=field) from None


def _state(run: TaskRun, outcome: str = "") -> str:
    known = _STATES.get(Outcome(outcome or run.outcome))
    if known is not None:
        return known
    detail = run.detail if isinstance(run.detail, dict) else {}
    return "discarded" if "given_up" in detail else "retryable"


def _id(run: TaskRun) -> str:
    return str(name_of(run.pk, run.scheduled_for))
