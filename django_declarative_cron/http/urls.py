"""The URLs of the protocol, to include at ``ojs/``, with an error response for all other paths.

Each path is matched with and without a trailing slash, so that no middleware redirects.
"""

from __future__ import annotations

from django.urls import URLPattern, re_path

from ..core.http_api import Right
from . import cron, meta, worker_api
from .endpoints import endpoint, nowhere

app_name = "ojs"

_ENDPOINTS = {
    "manifest": (r"manifest/?", endpoint(GET=(Right.READ, meta.manifest))),
    "openapi": (r"openapi\.json", endpoint(GET=(Right.READ, meta.openapi))),
    "health": (r"v1/health/?", endpoint(GET=(Right.READ, meta.health))),
    "cron": (
        r"v1/cron/?",
        endpoint(GET=(Right.READ, cron.list_tasks), POST=(Right.REGISTER, cron.register)),
    ),
    "cron-job": (
        r"v1/cron/(?P<name>(?s:.)+?)/?",
        endpoint(
            GET=(Right.READ, cron.show),
            PATCH=(Right.REGISTER, cron.switch),
            DELETE=(Right.REGISTER, cron.remove),
        ),
    ),
    "fetch": (r"v1/workers/fetch/?", endpoint(POST=(Right.WORK, worker_api.fetch))),
    "ack": (r"v1/workers/ack/?", endpoint(POST=(Right.WORK, worker_api.ack))),
    "nack": (r"v1/workers/nack/?", endpoint(POST=(Right.WORK, worker_api.nack))),
    "heartbeat": (r"v1/workers/heartbeat/?", endpoint(POST=(Right.WORK, worker_api.heartbeat))),
    "job": (
        r"v1/jobs/(?P<job>[^/]+)/?",
        endpoint(GET=(Right.READ, worker_api.show), DELETE=(Right.REGISTER, worker_api.cancel)),
    ),
}

urlpatterns: list[URLPattern] = [
    *(re_path(rf"^{path}\Z", view, name=name) for name, (path, view) in _ENDPOINTS.items()),
    re_path(r"^", nowhere),
]
