"""The endpoints of cron jobs (002 Registration, Listing, and Removal)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse

from .. import conf
from ..core.declarations.declaration import Declaration
from ..core.declarations.item import Declared
from ..core.declarations.problems import Check, Problem
from ..core.declarations.runners import EXTERNAL
from ..core.declarations.values import MOST_PROBLEMS, flaw_of_text
from ..core.http_api import Flaw, entry_of
from ..core.lint import advise
from ..core.overlap import DEFERRING
from ..exceptions import InvalidRegistrationError, echoed
from ..formatting import iso8601
from ..models import Origin, ScheduledTask
from ..runtime.clock import system_clock
from ..store import database, posted_tasks
from ..store.posted_tasks import OwnedError
from ..store.registration_sets import removal_of
from ..store.rows import NotRegisteredError, UnreadableRowError
from ..store.sentences import has_masks
from . import serializers
from .authentication import Caller
from .pagination import page_of
from .parsing import read_object
from .responses import RefusedError, invalid, not_found, respond

_NAME_KEYS = ("field", "reason", "expression")


def register(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Register a task (201) or update it (200) (CRON-26).

    Raises:
        RefusedError: 400 with all problems, 409 for a task of the settings.
    """
    entry, flaws = entry_of(read_object(request))
    owned = _of_settings(entry.get("name"))
    if owned is not None and not flaws:
        return _unchanged(request, caller, owned, entry)
    if has_masks([entry.get("args"), entry.get("options")]):
        message = "`args` or `options` has a mask in place of a secret: write the secret."
        raise invalid(message, field="args")
    declaration, problems = conf.posted(entry)
    if declaration is None or flaws:
        errors = [each for each in problems if each.check.level == "E"]
        raise _invalid([*map(_flaw_problem, flaws), *errors])
    if declaration.runner == EXTERNAL and declaration.overlap_policy in DEFERRING:
        message = f"`{declaration.overlap_policy}` is not for external workers."
        raise invalid(message, field="overlap_policy")
    try:
        row, is_new = posted_tasks.post(declaration, system_clock.now(), by=caller.name)
    except OwnedError as error:
        return _unchanged(request, caller, _task(error.name), entry)
    body = serializers.both(row, may_read=caller.may_read)
    warnings = [_problem_data(each) for each in (*problems, *_advice(declaration, entry))]
    if warnings:
        body["warnings"] = warnings
    place = f"{request.path.rstrip('/')}/{quote(row.name or '', safe='')}"
    return respond(request, body, 201 if is_new else 200, {"Location": place})


def _advice(declaration: Declaration, entry: dict[str, Any]) -> Iterator[Problem]:
    """Yield the warnings that the checks report for such a task in the settings."""
    declared = Declared(declaration, "cron_job", 0, "timezone" in entry)
    return advise([declared], system_clock.now(), conf.project_zone())


def _of_settings(name: Any) -> ScheduledTask | None:
    if not isinstance(name, str) or flaw_of_text(name) is not None:
        return None
    try:
        row = posted_tasks.read(name)
    except NotRegisteredError:
        return None
    return row if row.origin == Origin.SETTINGS else None


def _unchanged(
    request: HttpRequest, caller: Caller, row: ScheduledTask, entry: dict[str, Any]
) -> HttpResponse:
    """Respond to the registration of a task of the settings: success if it is the same."""
    if serializers.is_same(row, entry):
        return respond(request, serializers.both(row, may_read=caller.may_read))
    raise owned(OwnedError(row.name or ""))


def owned(error: OwnedError) -> RefusedError:
    message = f"{error.name!r} is declared in settings, and changed there only."
    details = {"name": error.name, "origin": Origin.SETTINGS}
    return RefusedError(409, "duplicate", message, details=details)


def _invalid(problems: list[Problem]) -> RefusedError:
    first = problems[0]
    fields = {} if first.error is None else first.error.details
    details: dict[str, Any] = {
        key: echoed(fields[key]) for key in _NAME_KEYS if isinstance(fields.get(key), str)
    }
    details["problems"] = [_problem_data(each) for each in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        details["more_problems"] = len(problems) - MOST_PROBLEMS
    if first.check == Check.TOO_LONG:
        return RefusedError(422, "unsupported", first.message, details=details)
    return invalid(first.message, **details)


def _flaw_problem(flaw: Flaw) -> Problem:
    error = InvalidRegistrationError(flaw.field, None, flaw.reason)
    message = f"`{echoed(flaw.field)}` {flaw.reason}."
    return Problem(check=Check.KEY_VALUE, place="cron_job", message=message, error=error)


def _problem_data(problem: Problem) -> dict[str, str]:
    return {"id": str(problem.check), "message": problem.message, "hint": problem.hint}


def list_tasks(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Return a page of tasks (002 List CronJobs)."""
    rows, pagination = page_of(request, posted_tasks.tasks())
    body = {
        "cron_jobs": [serializers.cron_job(row) for row in rows],
        "count": len(rows),
        "crons": [serializers.cron(row) for row in rows],
        "pagination": pagination,
    }
    return respond(request, body)


def show(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Return one task (002 Get a CronJob)."""
    try:
        row = _task(name)
    except RefusedError as absent:
        raise _removed(name) or absent from None
    return respond(request, serializers.both(row, may_read=caller.may_read))


def _removed(name: str) -> RefusedError | None:
    """Return the error for a task of which only the history is left."""
    if flaw_of_text(name) is not None:
        return None
    removal = removal_of(database.alias(), conf.options().DEPLOYMENT, name)
    if removal is None:
        return None
    times = {"removed_at": removal.at, "last_run_at": removal.last.started_at}
    message = "The task {!r} was removed; its history is kept."
    return not_found("cron_job", name, message, **{key: iso8601(at) for key, at in times.items()})


def switch(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Enable or disable one task (002 Toggle a CronJob, CRON-28)."""
    body = read_object(request)
    if set(body) != {"enabled"} or not isinstance(body["enabled"], bool):
        raise invalid('The body must be {"enabled": true} or {"enabled": false}.', field="enabled")
    _task(name)
    with _translated_errors(name):
        row = posted_tasks.switch(name, body["enabled"], caller.act())
    return respond(request, serializers.both(row, may_read=caller.may_read))


def remove(request: HttpRequest, caller: Caller, name: str) -> HttpResponse:
    """Remove one task (002 Remove a CronJob, CRON-27)."""
    row = _task(name)
    with _translated_errors(name):
        posted_tasks.remove(name, caller.act())
    removed = serializers.both(row, may_read=caller.may_read)["cron"]
    return respond(request, {"deleted": True, "name": name, "cron": removed})


def _task(name: str) -> ScheduledTask:
    if flaw_of_text(name) is not None:
        raise _absent(name)
    with _translated_errors(name):
        return posted_tasks.read(name)


@contextmanager
def _translated_errors(name: str) -> Iterator[None]:
    try:
        yield
    except NotRegisteredError:
        raise _absent(name) from None
    except OwnedError as error:
        raise owned(error) from None
    except UnreadableRowError as error:
        raise RefusedError(409, "invalid_request", f"{name!r}: {error}") from None


def _absent(name: str) -> RefusedError:
    return not_found("cron_job", name, "No task is called {!r}.")
