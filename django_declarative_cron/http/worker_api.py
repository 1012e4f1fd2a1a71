"""The endpoints of external workers: fetch, ack, nack, heartbeat; and of single jobs."""

from __future__ import annotations

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
from ..store.operator_actions import Act
from ..store.outbox import name_of
from ..store.posted_tasks import OwnedError
from ..store.sentences import masked
from ..store.task_status import shown_end, shown_outcome
from .authentication import Caller
from .cron import owned
from .parsing import read_object
from .responses import RefusedError, answer, invalid, not_found

_MOST: Final = 100
_LONGEST: Final = 24 * 60 * 60 * 1000
_STATE: Final = ("id", "state", "attempt", "cancel_requested", "started_at", "completed_at")
_STATES: Final = {
    Outcome.WAITING: "available",
    Outcome.RUNNING: "active",
    Outcome.SUCCEEDED: "completed",
    Outcome.CANCELLED: "cancelled",
    Outcome.INTERRUPTED: "retryable",
}


def fetch(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Reserve jobs for a worker."""
    body = _body(request)
    queues = body.get("queues", ["default"])
    if not isinstance(queues, list) or not all(isinstance(queue, str) for queue in queues):
        raise invalid("`queues` must be a list of texts.", field="queues")
    if len(queues) > _MOST:
        raise invalid(f"`queues` must have at most {_MOST} entries.", field="queues")
    count = body.get("count", body.get("max_jobs", 1))
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _MOST:
        raise invalid(f"`count` must be a number from 1 to {_MOST}.", field="count")
    found = external_jobs.fetch(
        list(dict.fromkeys(queues)),
        count,
        _text(body, "worker_id"),
        _visibility(body),
        system_clock.database_time(),
    )
    return answer(request, {"jobs": [shape(run) for run in found]})


def ack(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Record that a job is done."""
    body = _body(request)
    run, _ = _ended(body, Report(value=body.get("result")))
    told = {
        "acknowledged": True,
        "job_id": _id(run),
        "state": _state(run),
        "completed_at": iso8601(run.finished_at),
    }
    return answer(request, told)


def nack(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Record that a job failed; the retry policy of its task says what follows."""
    body = _body(request)
    run, event = _ended(body, _report(body.get("error")))
    following = event.next_retry_at if isinstance(event, events.TaskRunFailed) else None
    is_cancelled = run.outcome == Outcome.CANCELLED
    state = "cancelled" if is_cancelled else "retryable" if following else "discarded"
    told = {
        "acknowledged": True,
        "job_id": _id(run),
        "state": state,
        "attempt": run.attempt,
        "max_attempts": (run.job or {}).get("max_attempts"),
        "next_attempt_at": iso8601(following),
    }
    if state == "discarded":
        told["discarded_at"] = iso8601(run.finished_at)
    return answer(request, told)


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
    """Keep the jobs of a worker reserved, and tell it which of them are to end."""
    body = _body(request)
    given = body.get("active_jobs", [])
    if not isinstance(given, list) or not all(isinstance(job, str) for job in given):
        raise invalid("`active_jobs` must be a list of job ids.", field="active_jobs")
    if len(given) > _MOST:
        raise invalid(f"`active_jobs` must have at most {_MOST} entries.", field="active_jobs")
    if "job_id" in body:
        given = [*given, _text(body, "job_id")]
    claimant = Claimant(_reservations(body), _text(body, "worker_id"))
    kept = external_jobs.extend(given, claimant, _visibility(body), system_clock.database_time())
    told = {
        "state": "running",
        "directive": "continue",
        "jobs_extended": [_id(run) for run in kept],
        "jobs_to_cancel": [_id(run) for run in kept if run.cancel_requested_at is not None],
        "server_time": iso8601(system_clock.now()),
    }
    return answer(request, told)


def shown(request: HttpRequest, caller: Caller, job: str) -> HttpResponse:
    """Return one job: any run of the deployment, of a worker's or of this project's own."""
    try:
        return answer(request, {"job": _seen(external_jobs.find(job))})
    except NoJobError:
        raise _absent(job) from None


def cancelled(request: HttpRequest, caller: Caller, job: str) -> HttpResponse:
    """Cancel one job: at once where it waits, else its worker is asked to end it."""
    act = Act(author=caller.name, at=system_clock.now(), author_key=caller.user_key, note="HTTP")
    try:
        run = external_jobs.cancel(job, act, system_clock.database_time())
    except NoJobError:
        raise _absent(job) from None
    except OwnedError as error:
        raise owned(error) from None
    except StateError as error:
        raise _conflict(error.run, "cancel") from None
    seen = _seen(run)
    if not caller.may_read:
        seen = {key: seen[key] for key in _STATE}
    return answer(request, {"job": seen})


def _seen(run: TaskRun) -> dict[str, Any]:
    """Return a run for a caller that does not do it: no reservation, and secrets masked."""
    job = shape(run)
    job.pop("reservation", None)
    return {**job, "args": masked(job["args"]), "meta": masked(job["meta"])}


def shape(run: TaskRun) -> dict[str, Any]:
    """Return a run as a job of Open Job Spec, to the worker that does it."""
    job, now = run.job or {}, system_clock.now()
    triggered = iso8601(run.scheduled_for)
    found = {
        "specversion": "1.0",
        "id": _id(run),
        "type": job.get("type", run.task_name),
        "queue": job.get("queue", "default"),
        "args": job.get("args", []),
        "meta": {
            **job.get("meta", {}),
            "cron_name": run.task_name,
            "cron_triggered_at": triggered,
        },
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


def _ended(body: dict[str, Any], report: Report) -> tuple[TaskRun, events.Event | None]:
    job = _text(body, "job_id")
    if not job:
        raise invalid("`job_id` is missing.", field="job_id")
    reservation = _reservation(_text(body, "reservation"), "reservation")
    claimant = Claimant([reservation], _text(body, "worker_id"))
    try:
        return external_jobs.end(job, claimant, report, system_clock.database_time())
    except NoJobError:
        raise _absent(job) from None
    except StateError as error:
        raise _conflict(error.run, "end") from None


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


def _visibility(body: dict[str, Any]) -> timedelta:
    value = body.get("visibility_timeout_ms")
    if value is None:
        return options().VISIBILITY_TIMEOUT
    if isinstance(value, bool) or not isinstance(value, int) or not 1000 <= value <= _LONGEST:
        message = f"`visibility_timeout_ms` must be a number from 1000 to {_LONGEST}."
        raise invalid(message, field="visibility_timeout_ms")
    return timedelta(milliseconds=value)


def _reservations(body: dict[str, Any]) -> list[UUID]:
    given = body.get("reservations", [])
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise invalid("`reservations` must be a list of texts.", field="reservations")
    if len(given) > _MOST:
        raise invalid(f"`reservations` must have at most {_MOST} entries.", field="reservations")
    alone = [_text(body, "reservation")] if "reservation" in body else []
    return [_reservation(text, "reservations") for text in [*given, *alone]]


def _reservation(text: str, field: str) -> UUID:
    if not text:
        raise invalid(f"`{field}` is missing: send what came with the job.", field=field)
    try:
        return UUID(text)
    except ValueError:
        raise invalid(f"`{field}` is none of this server's.", field=field) from None


def _state(run: TaskRun, outcome: str = "") -> str:
    known = _STATES.get(Outcome(outcome or run.outcome))
    if known is not None:
        return known
    detail = run.detail if isinstance(run.detail, dict) else {}
    return "discarded" if "given_up" in detail else "retryable"


def _id(run: TaskRun) -> str:
    return str(name_of(run.pk, run.scheduled_for))


def _absent(job: str) -> RefusedError:
    safe = job.encode("utf-8", "replace").decode()
    return not_found(f"There is no job {safe!r}.", resource_type="job", resource_id=safe)


def _conflict(run: TaskRun, what: str) -> RefusedError:
    state = _state(run)
    message = f"Cannot {what} this job: it is {state}, or reserved by another worker."
    return RefusedError(
        409, "invalid_request", message, details={"job_id": _id(run), "current_state": state}
    )
