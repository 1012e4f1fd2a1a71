"""Compare the description with the server, by requests that schemathesis generates."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import django_declarative_cron
from django_declarative_cron.core.declarations.values import LONGEST_DESCRIPTION, LONGEST_NAME
from django_declarative_cron.cron import LONGEST_EXPRESSION
from django_declarative_cron.http import pagination, worker_api
from django_declarative_cron.http.meta import document
from django_declarative_cron.http.urls import urlpatterns
from django_declarative_cron.runtime.scheduler import Scheduler

from .conftest import ENTRY, Caller

SCHEMA = schemathesis.openapi.from_dict(document("/ojs"))
OPERATIONS = {
    f"{found.ok().method.upper()} {found.ok().path}": found.ok()
    for found in SCHEMA.get_all_operations()
}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture
def server(caller: Caller, settings: Any) -> Any:
    """Return a caller of the WSGI application, with a scheduler and a task."""
    settings.DECLARATIVE_CRON = {"HTTP_RATE": 1_000_000, "EXTERNAL_WORKERS": True}
    scheduler = Scheduler(background=False)
    scheduler.initialize([])
    caller.post("/v1/cron", ENTRY)
    SCHEMA.app = get_wsgi_application()
    # Django's test client does the same, because the test needs its connection afterwards.
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield caller
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)
    SCHEMA.app = None
    scheduler.stop()


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_response_matches_the_description(
    name: str, mode: GenerationMode, server: Caller
) -> None:
    seen: set[int] = set()

    @settings(
        max_examples=8,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=OPERATIONS[name].as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case) -> None:
        response = case.call(headers=server.headers, app=SCHEMA.app)
        case.validate_response(response, checks=CHECKS)
        seen.add(response.status_code)

    ask()
    assert seen


def test_the_description_is_served_and_describes_every_path(server: Caller) -> None:
    served = server.get("/openapi.json").data
    assert served == document("/ojs")
    described = {path.replace("{name}", "x").replace("{job}", "y")[1:] for path in served["paths"]}
    patterns = [pattern.pattern for pattern in urlpatterns[:-1]]
    for path in described:
        assert any(pattern.match(path) for pattern in patterns), path
    assert len(described) == len(patterns)


def test_the_limits_of_the_description_are_those_of_the_code() -> None:
    served = document("/ojs")
    assert served["info"]["version"] == django_declarative_cron.__version__
    assert served["servers"] == [{"url": "/ojs"}]
    posted = served["components"]["schemas"]["Posted"]["properties"]
    assert posted["cron"]["maxLength"] == posted["expression"]["maxLength"] == LONGEST_EXPRESSION
    assert posted["description"]["maxLength"] == LONGEST_DESCRIPTION
    assert posted["name"]["maxLength"] == LONGEST_NAME
    query = {each["name"]: each for each in served["paths"]["/v1/cron"]["get"]["parameters"]}
    limit = query["limit"]["schema"]
    assert (limit["default"], limit["maximum"]) == (pagination.LIMIT, pagination.MAX_LIMIT)
    fetch = served["components"]["schemas"]["Fetch"]["properties"]
    assert fetch["count"]["maximum"] == worker_api._MAX_ITEMS
    assert fetch["visibility_timeout_ms"]["maximum"] == worker_api._MAX_MILLISECONDS
