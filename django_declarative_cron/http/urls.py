"""The paths of the protocol, to be included at ``ojs/``; every other one below is answered too.

Each stands with and without a slash at its end, so that no middleware redirects.
"""

from __future__ import annotations

from django.urls import URLPattern, re_path

from ..core.http_api import Right
from . import cron, meta, worker_api
from .endpoints import Method, endpoint, nowhere

app_name = "ojs"

urlpatterns: list[URLPattern] = [
    re_path(r"^manifest/?\Z", endpoint(GET=Method(Right.READ, meta.manifest)), name="manifest"),
    re_path(r"^openapi\.json\Z", endpoint(GET=Method(Right.READ, meta.openapi)), name="openapi"),
    re_path(r"^v1/health/?\Z", endpoint(GET=Method(Right.READ, meta.health)), name="health"),
    re_path(
        r"^v1/cron/?\Z",
        endpoint(
            GET=Method(Right.READ, cron.listed),
            POST=Method(Right.REGISTER, cron.register),
        ),
        name="cron",
    ),
    re_path(
        r"^v1/cron/(?P<name>(?s:.)+?)/?\Z",
        endpoint(
            GET=Method(Right.READ, cron.shown),
            PATCH=Method(Right.REGISTER, cron.switched),
            DELETE=Method(Right.REGISTER, cron.removed),
        ),
        name="cron-job",
    ),
    *(
        re_path(rf"^v1/workers/{name}/?\Z", endpoint(POST=Method(Right.WORK, act)), name=name)
        for name, act in (
            ("fetch", worker_api.fetch),
            ("ack", worker_api.ack),
            ("nack", worker_api.nack),
            ("heartbeat", worker_api.heartbeat),
        )
    ),
    re_path(
        r"^v1/jobs/(?P<job>[^/]+)/?\Z",
        endpoint(
            GET=Method(Right.READ, worker_api.shown),
            DELETE=Method(Right.REGISTER, worker_api.cancelled),
        ),
        name="job",
    ),
    re_path(r"^", nowhere),
]
