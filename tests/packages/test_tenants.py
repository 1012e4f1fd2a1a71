"""The recipe for django-tenants: a tenant that one run leaves reaches no other run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ..database import postgres
from ..process import run_python

pytest.importorskip("django_tenants")

pytestmark = pytest.mark.nightly

_MAKE_TENANTS = """
from tests.packages.tenants.shop.models import Shop
for name in ("a", "b"):
    Shop.objects.create(schema_name=name, name=name)
"""
_SHOW = """
from django_declarative_cron.models import TaskRun
from django_tenants.utils import tenant_context
from tests.packages.tenants.orders.models import Order
from tests.packages.tenants.shop.models import Shop
for run in TaskRun.objects.order_by("task_name"):
    print(run.task_name, run.outcome, run.error, run.result)
for shop in Shop.objects.order_by("name"):
    with tenant_context(shop):
        print(shop.name, sorted(Order.objects.values_list("note", flat=True)))
"""
_PLACES = ("process", "process-atomic", "thread", "thread-atomic")


def test_a_tenant_that_is_left_set_reaches_no_other_run() -> None:
    url = postgres.start().replace("/ddc?", "/postgres?")

    def manage(*words: str) -> str:
        environment = {
            **os.environ,
            "DATABASE_URL": url,
            "DDC_TEST_DATABASE": "postgres",
            "DJANGO_SETTINGS_MODULE": "tests.packages.tenants.settings",
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        done = run_python("-m", "django", *words, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    manage("migrate_schemas", "--shared", "-v0")
    manage("shell", "--no-imports", "-c", _MAKE_TENANTS)
    manage("runscheduler", "--once")
    works = [f"works-for-each-{place}" for place in _PLACES]
    assert manage("shell", "--no-imports", "-c", _SHOW).splitlines() == [
        *(f"leaves-a-tenant-{place} succeeded  None" for place in _PLACES),
        *(f"{name} succeeded  {{'began in': 'public'}}" for name in works),
        f"a {works}",
        f"b {['left'] * 4 + works}",
    ]
