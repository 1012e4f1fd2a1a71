"""Turn functions into a view: methods, authentication, and errors as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.core.signals import got_request_exception
from django.db import Error as DatabaseError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from ..core.http_api import Right
from ..exceptions import echoed
from ..signals import report
from ..store import database
from ..store.database import why_unavailable
from .authentication import authenticate
from .responses import VERSION, RefusedError, respond, respond_error

View = Callable[..., HttpResponse]
Method = tuple[Right, View]

_MAJOR: Final = VERSION.partition(".")[0]


def endpoint(**methods: Method) -> View:
    """Return a view that responds in the protocol, also after an error.

    Args:
        methods: for each HTTP method, the right that it requires and its function, which takes
            the request, the caller and the arguments of the URL.
    """
    if "GET" in methods:
        methods["HEAD"] = methods["GET"]

    def view(request: HttpRequest, **arguments: Any) -> HttpResponse:
        try:
            return _dispatch(request, methods, arguments)
        except RefusedError as error:
            return respond_error(request, error)
        except DatabaseError as error:
            report("An HTTP request", error, "the caller got an error response")
            return respond_error(request, _unavailable())
        except Exception as error:
            # Error reporters receive this signal for each unhandled exception.
            got_request_exception.send(sender=None, request=request)
            report("An HTTP request", error, "the caller got an error response")
            internal = RefusedError(500, "internal_error", "Something went wrong.")
            return respond_error(request, internal)

    return csrf_exempt(transaction.non_atomic_requests(view))


def _dispatch(
    request: HttpRequest, methods: Mapping[str, Method], arguments: dict[str, Any]
) -> HttpResponse:
    allowed = sorted({*methods, "OPTIONS"})
    headers = {"Allow": ", ".join(allowed)}
    if request.method == "OPTIONS":
        return respond(request, {"allow": allowed}, headers=headers)
    method = methods.get(request.method or "")
    if method is None:
        message = f"{request.method} is not allowed here."
        raise RefusedError(405, "method_not_allowed", message, headers=headers)
    _require_version(request)
    right, function = method
    return function(request, authenticate(request, right), **arguments)


def _require_version(request: HttpRequest) -> None:
    wanted = request.headers.get("OJS-Version", VERSION)
    if wanted.strip().partition(".")[0] != _MAJOR:
        message = f"This server speaks version {VERSION} of the protocol."
        raise RefusedError(422, "unsupported", message, details={"supported": [VERSION]})


def _unavailable() -> RefusedError:
    # The connection may fail after the commit, so the outcome is unknown.
    why = why_unavailable(database.alias()) or "The database did not confirm it."
    message = f"{why} Ask again; it is safe to repeat."
    return RefusedError(503, "backend_error", message, headers={"Retry-After": "1"})


@csrf_exempt
def nowhere(request: HttpRequest, **_: Any) -> HttpResponse:
    message = f"Nothing is at {echoed(request.path)}."
    return respond_error(request, RefusedError(404, "not_found", message))
