"""Parse the body of a request: strict JSON of limited size."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, UnreadablePostError

from ..conf import options
from ..core.declarations.values import flaw_of_data
from ..exceptions import echoed
from .responses import CONTENT_TYPE, RefusedError, invalid

ACCEPTED: Final = (CONTENT_TYPE, "application/json")


def read_object(request: HttpRequest) -> dict[str, Any]:
    """Return the body of a request, a JSON object.

    Raises:
        RefusedError: 415 for another content type, 413 for a body that is too large, 400 for
            anything but one object of strict JSON: duplicate keys, ``NaN``, infinite numbers,
            excessive nesting, or text that a database cannot store.
    """
    if request.content_type not in ACCEPTED:
        raise unsupported_type()
    text = _text(request)
    try:
        hooks: Any = {"object_pairs_hook": _object, "parse_constant": _constant}
        found = json.loads(text, parse_float=_float, **hooks)
    except RecursionError:
        raise invalid("The body is nested too deep.") from None
    except ValueError as error:
        raise invalid(f"The body is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise invalid("The body must be a JSON object.")
    flaw = flaw_of_data(found)
    if flaw is not None:
        raise invalid(f"The body {flaw}.")
    return found


def unsupported_type() -> RefusedError:
    message = f"The content type must be {CONTENT_TYPE} or application/json."
    return RefusedError(415, "unsupported_media_type", message)


def _text(request: HttpRequest) -> str:
    most = options().HTTP_MAX_BODY
    too_large = RefusedError(
        413, "payload_too_large", f"The body must have at most {most} bytes.", details={"max": most}
    )
    if _length(request) > most:
        raise too_large
    if isinstance(request, WSGIRequest) and not request.META.get("CONTENT_LENGTH"):
        _refuse_chunks(request)
    try:
        # Content-Length may be missing or wrong, so limit the bytes that are read.
        body = request.read(most + 1)
        if len(body) > most:
            raise too_large
        return body.decode()
    except RequestDataTooBig:
        raise too_large from None
    except UnicodeDecodeError:
        raise invalid("The body is not UTF-8.") from None
    except UnreadablePostError:
        raise invalid("The body could not be read.") from None


def _refuse_chunks(request: HttpRequest) -> None:
    # Django does not read chunked bodies under WSGI.
    if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
        message = "The body must have a Content-Length: chunked bodies are not read under WSGI."
        raise RefusedError(411, "invalid_request", message)


def _length(request: HttpRequest) -> int:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        raise invalid("Content-Length is not a number.") from None


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {echoed(key)!r} occurs twice in one object")
        found[key] = value
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large a number")
    return value
