"""Pages of a database that cannot answer: one sentence, and a limit for each statement."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin import ShowFacets, site
from django.db import OperationalError, connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from django_declarative_cron.admin.base import ReadOnlyModelAdmin
from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.store import database

from . import pages, rows

MODELS = ("scheduledtask", "taskrun", "taskoverride", "schedulerinstance", "accesstoken")
MIGRATE = "The tables of scheduled tasks are not there yet: run `python manage.py migrate` first."


def refuse(*args: Any, **kwargs: Any) -> Any:
    raise OperationalError("the server is gone")


@pytest.mark.parametrize("model", MODELS)
def test_each_list_says_that_the_tables_are_missing(
    root: Client, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_are_there", lambda using: False)
    monkeypatch.setattr(ReadOnlyModelAdmin, "get_queryset", refuse)
    page = root.get(pages.changelist(model))
    assert page.status_code == 503
    assert "run `python manage.py migrate` first." in page.content.decode()
    assert "the server is gone" not in page.content.decode()


@pytest.mark.parametrize("name", ["calendar", "expression", "timeline"])
def test_the_other_pages_say_it_too(
    root: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "flaw_of_tables", refuse)
    page_admin = site.get_model_admin(ScheduledTask)
    view = next(u.callback for u in page_admin.urls if u.name and u.name.endswith(f"_{name}"))
    monkeypatch.setattr(page_admin.admin_site, "has_permission", refuse)
    page = view(RequestFactory().get(reverse(f"admin:{pages.APP}_scheduledtask_{name}")))
    assert page.status_code == 503
    assert "The database does not answer." in page.content.decode()


def test_another_error_of_the_database_is_an_error(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReadOnlyModelAdmin, "get_queryset", refuse)
    with pytest.raises(OperationalError):
        root.get(pages.changelist())


def test_a_page_that_takes_too_long_is_stopped(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no limit for a statement")
    monkeypatch.setattr(database, "PAGE", 1)
    monkeypatch.setattr(ReadOnlyModelAdmin, "get_queryset", lambda *_: _sleeping())
    page = root.get(pages.changelist("taskrun"))
    assert page.status_code == 503
    assert "took longer than 1 seconds" in page.content.decode()
    # The connection, and the transaction around the page, go on.
    assert TaskRun.objects.count() == 0


def _sleeping() -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(3)")
    return TaskRun.objects.all()


@pytest.mark.parametrize("model", MODELS)
def test_no_list_offers_to_count_the_rows_of_each_choice(root: Client, model: str) -> None:
    rows.run()
    page = root.get(pages.changelist(model), {"_facets": "True"})
    assert "changelist-filter-extra-actions" not in page.content.decode()
    page_admin = site.get_model_admin(apps.get_model(pages.APP, model))
    assert page_admin.show_facets is ShowFacets.NEVER


def test_an_order_that_no_list_of_a_history_offers_is_not_taken(root: Client) -> None:
    for name in ("b", "c", "a"):
        rows.run(name)
    with CaptureQueriesContext(connection) as queries:
        root.get(pages.changelist("taskrun"), {"o": "2"})
    asked = " ".join(each["sql"] for each in queries)
    assert "task_name ASC" not in asked.replace('"', "").replace("`", "")
