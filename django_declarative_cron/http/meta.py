"""The endpoints about the server itself: capabilities, health, and its OpenAPI description."""

from __future__ import annotations

import json
from datetime import timedelta
from importlib.resources import files
from typing import Any

from django.db import connections
from django.http import HttpRequest, HttpResponse

from .. import __version__, conf, handlers
from ..core.overlap import POLICIES
from ..runtime.clock import system_clock
from ..store import database
from ..store.status import Attendance, attendance, patience
from .authentication import Caller
from .pagination import LIMIT, MAX_LIMIT
from .parsing import ACCEPTED
from .responses import VERSION, respond


def manifest(request: HttpRequest, caller: Caller) -> HttpResponse:
    options = conf.options()
    body = {
        "specversion": VERSION,
        "implementation": {
            "name": "django-declarative-cron",
            "version": __version__,
            "language": "python",
        },
        "conformance_level": 2,
        "protocols": ["http"],
        "backend": connections[database.alias()].vendor,
        "content_types": list(ACCEPTED),
        "capabilities": {
            "cron": True,
            "cron_seconds": True,
            "interval": True,
            "overlap_policies": list(POLICIES),
            "external_workers": options.EXTERNAL_WORKERS,
            "batch_enqueue": False,
            "workflows": False,
        },
        "extensions": {"authentication": ["bearer", "session"]},
        "limits": {
            "body_bytes": options.HTTP_MAX_BODY,
            "requests_per_minute": options.HTTP_RATE,
            "page": LIMIT,
            "largest_page": MAX_LIMIT,
        },
        "types": handlers.known(),
    }
    return respond(request, body)


def health(request: HttpRequest, caller: Caller) -> HttpResponse:
    using, options = database.alias(), conf.options()
    began = system_clock.monotonic()
    found = attendance(using, options.DEPLOYMENT, system_clock.database_time())
    latency = system_clock.monotonic() - began
    heard = () if found is None else found.heard(patience(options.LEASE))
    is_fine = bool(heard)
    body: dict[str, Any] = {
        "status": "ok" if is_fine else "degraded",
        "version": VERSION,
        "uptime_seconds": int(_uptime(found).total_seconds()),
        "schedulers": len(heard),
        "backend": {
            "type": connections[using].vendor,
            "status": "connected",
            "latency_ms": round(latency * 1000),
        },
    }
    if not is_fine:
        body["reason"] = "no scheduler has sent a heartbeat lately"
    return respond(request, body, 200 if is_fine else 503)


def _uptime(found: Attendance | None) -> timedelta:
    started = [] if found is None else [each.started_at for each in found.present]
    return max((found.now - min(started)), timedelta(0)) if found and started else timedelta(0)


def openapi(request: HttpRequest, caller: Caller) -> HttpResponse:
    return respond(request, document(request.path.removesuffix("/openapi.json").rstrip("/")))


def document(prefix: str) -> dict[str, Any]:
    """Return the description, with the version and the URL prefix of this server."""
    text = (files(__package__) / "openapi.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    info = {**found["info"], "version": __version__}
    return {**found, "info": info, "servers": [{"url": prefix or "/"}]}
