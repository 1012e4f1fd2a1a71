"""From a request to an answer: who calls, which method, and whatever goes wrong in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from django.core.signals import got_request_exception
from django.db import Error as DatabaseError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from ..core.http_api import Right
from ..exceptions import echoed
from ..signals import report
from ..store import database
from ..store.tables import why_unavailable
from .authentication import Caller, admit
from .responses import VERSION, RefusedError, answer, refusal

Act = Callable[..., HttpResponse]
View = Callable[..., HttpResponse]

_MAJOR: Final = VERSION.partition(".")[0]


class Method(NamedTuple):
    """What a method of an endpoint does.

    Args:
        right: what its caller must be allowed to do.
        act: does it; takes the request, the caller, and what the URL says.
    """

    right: Right
    act: Act


def endpoint(**methods: Method) -> View:
    """Make a view that answers in the protocol, whatever happens."""
    if "GET" in methods:
        methods["HEAD"] = methods["GET"]
    allowed = ", ".join(sorted({*methods, "OPTIONS"}))

    def view(request: HttpRequest, **said: Any) -> HttpResponse:
        try:
            return _served(request, methods, allowed, said)
        except RefusedError as error:
            return refusal(request, error)
        except DatabaseError as error:
            report("A request over HTTP", error, "its caller was told so")
            return refusal(request, _unavailable())
        except Exception as error:
            # Whoever watches a Django project for errors is to see this one too.
            got_request_exception.send(sender=None, request=request)
            report("A request over HTTP", error, "its caller was told so")
            return refusal(request, RefusedError(500, "internal_error", "Something went wrong."))

    return csrf_exempt(transaction.non_atomic_requests(view))


def _served(
    request: HttpRequest, methods: dict[str, Method], allowed: str, said: dict[str, Any]
) -> HttpResponse:
    if request.method == "OPTIONS":
        return answer(request, {"allow": allowed.split(", ")}, headers={"Allow": allowed})
    method = methods.get(request.method or "")
    if method is None:
        message = f"{request.method} is not allowed here."
        raise RefusedError(405, "method_not_allowed", message, headers={"Allow": allowed})
    _require_version(request)
    caller: Caller = admit(request, method.right)
    return method.act(request, caller, **said)


def _require_version(request: HttpRequest) -> None:
    wanted = request.headers.get("OJS-Version", VERSION)
    if wanted.strip().partition(".")[0] != _MAJOR:
        message = f"This server speaks version {VERSION} of the protocol."
        raise RefusedError(422, "unsupported", message, details={"supported": [VERSION]})


def _unavailable() -> RefusedError:
    # An answer of the database may be lost after it has committed: nobody knows which.
    why = why_unavailable(database.alias()) or "The database did not confirm it."
    message = f"{why} Ask again; it is safe to repeat."
    return RefusedError(503, "backend_error", message, headers={"Retry-After": "1"})


@csrf_exempt
def nowhere(request: HttpRequest, **said: Any) -> HttpResponse:
    """Answer for every path that is none of the protocol's."""
    message = f"Nothing is at {echoed(request.path)}."
    return refusal(request, RefusedError(404, "not_found", message))
