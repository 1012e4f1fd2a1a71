"""Build responses: JSON with the headers of the protocol, and errors in its envelope."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest, HttpResponse

CONTENT_TYPE: Final = "application/openjobspec+json"
VERSION: Final = "1.0"

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class RefusedError(Exception):
    """End a request with an error response.

    Args:
        status: of the response.
        code: of the protocol.
        message: for people.
        details: for programs, JSON-native.
        headers: additional ones.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = dict(details or {})
        self.headers = dict(headers or {})


def invalid(message: str, **details: Any) -> RefusedError:
    return RefusedError(400, "invalid_request", message, details=details)


def not_found(kind: str, name: str, message: str, **details: Any) -> RefusedError:
    """Return the error for a resource that does not exist; the message has a place for its name."""
    safe = name.encode("utf-8", "replace").decode()
    known = {"resource_type": kind, "resource_id": safe}
    return RefusedError(404, "not_found", message.format(safe), details={**known, **details})


def request_id(request: HttpRequest) -> str:
    """Return the id of a request: the one of the caller if it is valid, else a new one."""
    known: str | None = request.META.get("ddc.request_id")
    if known is None:
        given = request.headers.get("X-Request-Id", "")
        known = given if _REQUEST_ID.fullmatch(given) else f"req_{uuid.uuid4()}"
        request.META["ddc.request_id"] = known
    return known


def respond(
    request: HttpRequest,
    body: Mapping[str, Any],
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> HttpResponse:
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    fixed = {
        "OJS-Version": VERSION,
        "X-Request-Id": request_id(request),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Content-Length": str(len(content)),
    }
    return HttpResponse(
        b"" if request.method == "HEAD" else content,
        status=status,
        content_type=CONTENT_TYPE,
        headers={**fixed, **(headers or {})},
    )


def respond_error(request: HttpRequest, error: RefusedError) -> HttpResponse:
    envelope = {
        "code": error.code,
        "message": error.message,
        "retryable": error.status in (429, 503),
        "details": error.details,
        "request_id": request_id(request),
    }
    return respond(request, {"error": envelope}, error.status, error.headers)
