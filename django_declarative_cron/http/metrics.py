"""A view that serves the metrics from the database in a web process.

It requires a token with the right to read, or the permission to view scheduled tasks.
"""

from __future__ import annotations

from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ..core.http_api import Right
from ..monitoring.metrics import MetricsUnavailableError, exposition, read_counts
from ..store import database
from ..store.database import AWAY, why_unavailable
from .authentication import authenticate
from .responses import RefusedError


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    try:
        authenticate(request, Right.READ)
        newer = "application/openmetrics-text" in request.headers.get("Accept", "")
        body, kind = exposition(read_counts(), openmetrics=newer)
    except RefusedError as error:
        return _plain(error.message, error.status, error.headers)
    except MetricsUnavailableError as error:
        return _plain(str(error), 501)
    except DatabaseError:
        return _plain(why_unavailable(database.alias()) or AWAY, 503)
    return HttpResponse(body, content_type=kind, headers={"Cache-Control": "no-store"})


def _plain(words: str, status: int, headers: dict[str, str] | None = None) -> HttpResponse:
    kind = "text/plain; charset=utf-8"
    return HttpResponse(words + "\n", status=status, content_type=kind, headers=headers)
