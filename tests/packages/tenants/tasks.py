"""Tasks of a project with tenants."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django_tenants.utils import get_tenant_model, tenant_context

from django_declarative_cron import Run

from .orders.models import Order


def leaves_a_tenant() -> None:
    """Work for the last tenant, and leave it set."""
    connection.set_tenant(get_tenant_model().objects.latest("pk"))  # type: ignore[attr-defined]
    Order.objects.create(note="left")


def works_for_each(run: Run) -> dict[str, Any]:
    """Work for each tenant; return the schema in which the run began."""
    began = connection.schema_name  # type: ignore[attr-defined]
    for tenant in get_tenant_model().objects.exclude(schema_name="public"):
        with tenant_context(tenant):
            Order.objects.create(note=run.task_name)
    return {"began in": began}
