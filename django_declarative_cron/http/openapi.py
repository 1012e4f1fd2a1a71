"""The description of the binding for programs, in OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from .. import __version__
from ..core.declarations.values import LONGEST_DESCRIPTION
from ..cron import LONGEST_EXPRESSION
from .pagination import LIMIT, MOST
from .responses import CONTENT_TYPE

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_INSTANT: Schema = {"type": ["string", "null"], "format": "date-time"}
_OBJECT: Schema = {"type": "object"}


def document(prefix: str) -> dict[str, Any]:
    """Return the description."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "django-declarative-cron",
            "version": __version__,
            "description": "The HTTP binding of Open Job Spec for scheduled tasks.",
        },
        "servers": [{"url": prefix or "/"}],
        "security": [{"bearer": []}],
        "paths": {**_system(), **_cron(), **_workers()},
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


def _system() -> dict[str, Any]:
    return {
        "/manifest": {"get": _operation("manifest", "What this server can do", {200: _OBJECT})},
        "/openapi.json": {"get": _operation("openapi", "This description", {200: _OBJECT})},
        "/v1/health": {
            "get": _operation(
                "health", "Whether a scheduler is there", {200: _OBJECT, 503: _OBJECT}
            )
        },
    }


def _cron() -> dict[str, Any]:
    one = {"name": "name", "in": "path", "required": True, "schema": {**_TEXT, "minLength": 1}}
    both = _ref("Both")
    return {
        "/v1/cron": {
            "get": _operation("list", "Give the tasks", {200: _ref("List")}, parameters=_QUERY),
            "post": _operation(
                "register",
                "Register a task, or bring it up to date",
                {200: both, 201: both},
                body=_ref("Posted"),
                errors=(400, 409, 411, 413, 415),
            ),
        },
        "/v1/cron/{name}": {
            "parameters": [one],
            "get": _operation("show", "Give one task", {200: both}, errors=(404,)),
            "patch": _operation(
                "switch",
                "Enable or disable one task",
                {200: both},
                body=_ref("Switch"),
                errors=(400, 404, 409, 411, 413, 415),
            ),
            "delete": _operation(
                "remove", "Remove one task", {200: _ref("Deleted")}, errors=(404, 409)
            ),
        },
    }


def _workers() -> dict[str, Any]:
    one = {"name": "job", "in": "path", "required": True, "schema": {**_TEXT, "minLength": 1}}
    job, errors = _of({"job": _ref("Job")}), (400, 404, 409, 411, 413, 415)
    fetched = _of({"jobs": {"type": "array", "items": _ref("Job")}})
    acts = {
        "fetch": ("Reserve jobs for a worker outside", fetched, _FETCH),
        "ack": ("Record that a job is done", _OBJECT, _ACK),
        "nack": ("Record that a job failed", _OBJECT, _NACK),
        "heartbeat": ("Keep the jobs of a worker reserved", _OBJECT, _BEAT),
    }
    return {
        **{
            f"/v1/workers/{name}": {
                "post": _operation(name, summary, {200: schema}, body=body, errors=errors)
            }
            for name, (summary, schema, body) in acts.items()
        },
        "/v1/jobs/{job}": {
            "parameters": [one],
            "get": _operation("job", "Give one job", {200: job}, errors=(404,)),
            "delete": _operation("cancel", "Cancel one job", {200: job}, errors=(404, 409)),
        },
    }


_VISIBILITY: Schema = {"type": "integer", "minimum": 1000, "maximum": 86_400_000}
_NAME: Schema = {**_TEXT, "maxLength": 255}
_FETCH: Schema = {
    "type": "object",
    "properties": {
        "queues": {"type": "array", "items": _TEXT, "maxItems": MOST},
        "count": {"type": "integer", "minimum": 1, "maximum": MOST},
        "worker_id": _NAME,
        "visibility_timeout_ms": _VISIBILITY,
    },
}
_ACK: Schema = {
    "type": "object",
    "properties": {"job_id": _NAME, "worker_id": _NAME, "reservation": _NAME, "result": {}},
    "required": ["job_id", "reservation"],
}
_NACK: Schema = {
    "type": "object",
    "properties": {
        "job_id": _NAME,
        "worker_id": _NAME,
        "reservation": _NAME,
        "error": {
            "type": "object",
            "properties": {
                "code": {**_TEXT, "minLength": 1},
                "message": _TEXT,
                "retryable": {"type": "boolean"},
                "details": {},
            },
        },
    },
    "required": ["job_id", "reservation", "error"],
}
_BEAT: Schema = {
    "type": "object",
    "properties": {
        "worker_id": _NAME,
        "job_id": _NAME,
        "reservation": _NAME,
        "active_jobs": {"type": "array", "items": _TEXT, "maxItems": MOST},
        "reservations": {"type": "array", "items": _TEXT, "maxItems": MOST},
        "visibility_timeout_ms": _VISIBILITY,
    },
}
_QUERY: list[Schema] = [
    {"name": "enabled", "in": "query", "schema": {"enum": ["true", "false"]}},
    {
        "name": "limit",
        "in": "query",
        "schema": {"type": "integer", "minimum": 1, "maximum": MOST, "default": LIMIT},
    },
    {"name": "cursor", "in": "query", "schema": _TEXT},
]


def _operation(
    name: str,
    summary: str,
    answers: dict[int, Schema],
    *,
    body: Schema | None = None,
    parameters: list[Schema] | None = None,
    errors: tuple[int, ...] = (),
) -> Schema:
    refused = (*errors, 401, 403, 422, 429, 503, *((400,) if parameters else ()))
    found = {
        **{status: _ref("Error") for status in refused},
        **answers,
    }
    return {
        "operationId": name,
        "summary": summary,
        **({"parameters": parameters} if parameters else {}),
        **({"requestBody": {"required": True, "content": _both_types(body)}} if body else {}),
        "responses": {
            str(status): {"description": summary, "content": {CONTENT_TYPE: {"schema": schema}}}
            for status, schema in sorted(found.items())
        },
    }


def _both_types(schema: Schema) -> Schema:
    return {CONTENT_TYPE: {"schema": schema}, "application/json": {"schema": schema}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _schemas() -> dict[str, Schema]:
    return {
        "CronJob": _task({"cron": _TEXT} | _JOB),
        "Cron": _task({"expression": _TEXT, "job_template": _of(_JOB)}),
        "Posted": _posted(),
        "Switch": {**_of({"enabled": {"type": "boolean"}}), "additionalProperties": False},
        "Both": _of({"cron_job": _ref("CronJob"), "cron": _ref("Cron")}),
        "List": _of(
            {
                "cron_jobs": {"type": "array", "items": _ref("CronJob")},
                "count": {"type": "integer"},
                "crons": {"type": "array", "items": _ref("Cron")},
                "pagination": _of(
                    {
                        "total": {"type": "integer"},
                        "limit": {"type": "integer"},
                        "has_more": {"type": "boolean"},
                        "next_cursor": _MAYBE_TEXT,
                    }
                ),
            }
        ),
        "Deleted": _of({"deleted": {"const": True}, "name": _TEXT, "cron": _ref("Cron")}),
        "Job": {
            **_of({"id": _TEXT, "type": _TEXT, "state": _TEXT, "args": {"type": "array"}}),
            # A caller that may not read is told no more.
            "required": ["id", "state"],
        },
        "Error": _of({"error": _of(_ERROR)}),
    }


_JOB: dict[str, Schema] = {"type": _TEXT, "args": {"type": "array"}, "options": _OBJECT}
_DECLARED: dict[str, Schema] = {
    "name": _TEXT,
    "timezone": _TEXT,
    "overlap_policy": _TEXT,
    "enabled": {"type": "boolean"},
    "description": _MAYBE_TEXT,
}
_MANAGED: dict[str, Schema] = {
    "last_run_at": _INSTANT,
    "next_run_at": _INSTANT,
    "run_count": {"type": "integer"},
    "created_at": _INSTANT,
}
_ERROR: dict[str, Schema] = {
    "code": _TEXT,
    "message": _TEXT,
    "retryable": {"type": "boolean"},
    "details": _OBJECT,
    "request_id": _TEXT,
}


def _task(declared: dict[str, Schema]) -> Schema:
    """Describe a task; a caller that may not read is told its state alone."""
    state = {"name": _TEXT, "enabled": _DECLARED["enabled"], **_MANAGED}
    optional = {**_DECLARED, **declared, "problem": _TEXT}
    return {**_of(state), "properties": {**optional, **state}}


def _posted() -> Schema:
    """Describe what may be posted; the server's own reader has the last word."""
    name = {**_TEXT, "pattern": r"^[a-z0-9][a-z0-9\-.]*$", "maxLength": 255}
    template = {**_of(_JOB), "required": ["type"]}
    return {
        "type": "object",
        "properties": {
            **_DECLARED,
            **_JOB,
            "name": name,
            "cron": {**_TEXT, "maxLength": LONGEST_EXPRESSION},
            "expression": {**_TEXT, "maxLength": LONGEST_EXPRESSION},
            "description": {**_MAYBE_TEXT, "maxLength": LONGEST_DESCRIPTION},
            "job_template": template,
        },
        "required": ["name"],
        "anyOf": [{"required": ["cron"]}, {"required": ["expression"]}],
    }


def _of(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "required": sorted(properties)}
