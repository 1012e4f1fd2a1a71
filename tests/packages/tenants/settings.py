"""A project as the documentation of django-tenants has it."""

from __future__ import annotations

from tests.database import from_environment

SECRET_KEY = "tenants"
USE_TZ = True
_ENTRY = from_environment()
DATABASES = {
    "default": {
        **_ENTRY,
        "ENGINE": "django_tenants.postgresql_backend",
        "CONN_MAX_AGE": None,
    }
}
DATABASE_ROUTERS = ["django_tenants.routers.TenantSyncRouter"]
SHARED_APPS = [
    "django_tenants",
    "django.contrib.contenttypes",
    "django_declarative_cron",
    "tests.packages.tenants.shop",
]
TENANT_APPS = ["tests.packages.tenants.orders"]
INSTALLED_APPS = [*SHARED_APPS, *TENANT_APPS]
TENANT_MODEL = "shop.Shop"
TENANT_DOMAIN_MODEL = "shop.Domain"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

_TASKS = "tests.packages.tenants.tasks"
SCHEDULED_TASKS = [
    {
        "name": f"{name.replace('_', '-')}-{runner}" + ("-atomic" if atomic else ""),
        "cron": "* * * * *",
        "callback": f"{_TASKS}.{name}",
        "runner": runner,
        "atomic": atomic,
    }
    for name in ("leaves_a_tenant", "works_for_each")
    for runner in ("thread", "process")
    for atomic in (False, True)
]
DECLARATIVE_CRON = {"WORKERS": 1}
