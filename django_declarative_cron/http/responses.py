"""Answers: JSON with the headers of the protocol, errors in their envelope, never HTML."""

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
    """End a request with an error.

    Args:
        status: of the answer.
        code: of the protocol's vocabulary.
        message: for people.
        details: for programs, JSON-native.
        headers: of the answer, besides those that each has.
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

    @property
    def is_retryable(self) -> bool:
        """Return whether the same request may succeed later."""
        return self.status in (429, 503)


def invalid(message: str, **details: Any) -> RefusedError:
    """Refuse a request that is wrong in itself."""
    return RefusedError(400, "invalid_request", message, details=details)


def not_found(message: str, **details: Any) -> RefusedError:
    """Refuse a request for what is not there."""
    return RefusedError(404, "not_found", message, details=details)


def request_id(request: HttpRequest) -> str:
    """Return the name of a request: the caller's own, where it is a sound one."""
    known: str | None = request.META.get("ddc.request_id")
    if known is None:
        given = request.headers.get("X-Request-Id", "")
        known = given if _REQUEST_ID.fullmatch(given) else f"req_{uuid.uuid4()}"
        request.META["ddc.request_id"] = known
    return known


def answer(
    request: HttpRequest,
    body: Mapping[str, Any],
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> HttpResponse:
    """Answer with JSON."""
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    response = HttpResponse(content, status=status, content_type=CONTENT_TYPE)
    response["OJS-Version"] = VERSION
    response["X-Request-Id"] = request_id(request)
    response["Cache-Control"] = "no-store"
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Length"] = str(len(content))
    for name, value in (headers or {}).items():
        response[name] = value
    if request.method == "HEAD":
        response.content = b""
    return response


def refusal(request: HttpRequest, error: RefusedError) -> HttpResponse:
    """Answer with an error in its envelope."""
    envelope = {
        "code": error.code,
        "message": error.message,
        "retryable": error.is_retryable,
        "details": error.details,
        "request_id": request_id(request),
    }
    return answer(request, {"error": envelope}, error.status, error.headers)
