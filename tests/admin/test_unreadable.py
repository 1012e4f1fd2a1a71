"""Rows that cannot be fetched are shown all the same: pages and commands mend them first."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, models
from django.test import Client

from django_declarative_cron.models import ScheduledTask, SchedulerInstance, TaskRun
from django_declarative_cron.store.row_repair import mend
from django_declarative_cron.testing import Simulation

from ..scenarios.test_unreadable import COLUMNS, MODELS, damage

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="columns have types")

ROWS = {"scheduledtask": ScheduledTask, "taskrun": TaskRun, "schedulerinstance": SchedulerInstance}
PAGES = [f"{name}/{page}" for name in ROWS for page in ("", "change/")]


def _look(root: Client, page: str) -> None:
    if not page.startswith("cron "):
        assert root.get(f"/admin/django_declarative_cron/{page}").status_code == 200
        return
    out = StringIO()
    # Whether the judge finds fault with what was made up is not the point.
    with suppress(CommandError):
        call_command("cron", page.removeprefix("cron "), stdout=out, stderr=out)
    assert out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("page", ["cron list", "cron verify", *PAGES])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_people_are_shown_everything_all_the_same(
    root: Client, model: type[models.Model], page: str
) -> None:
    sim = Simulation(start="2024-01-01T10:00:00Z")
    sim.initialize([(name, "0 * * * *", sim.job(), timedelta(minutes=5)) for name in ("a", "b")])
    sim.advance_to("2024-01-01T10:00:30Z")
    if page.endswith("change/"):
        row = ROWS[page.split("/")[0]]
        page = page.replace("change/", f"{row._base_manager.latest('pk').pk}/change/")
    for damaged, field, wrong in COLUMNS:
        if damaged is model and not field.primary_key:
            damage(model, field, wrong)
    _look(root, page)
    mend("default", "default")
