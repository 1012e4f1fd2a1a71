"""Tenants, and a model of which each has a table."""

from __future__ import annotations

from django.db import models
from django_tenants.models import DomainMixin, TenantMixin


class Shop(TenantMixin):  # type: ignore[misc]
    """A tenant."""

    name = models.CharField(max_length=50)
    auto_create_schema = True


class Domain(DomainMixin):  # type: ignore[misc]
    """Its address."""
