"""The Django app."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DeclarativeCronConfig(AppConfig):
    """Name the app, and register its system checks once Django is ready."""

    name = "django_declarative_cron"
    verbose_name = _("Scheduled tasks")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register checks and watchers; start nothing and ask the database nothing."""
        from . import checks, monitoring  # noqa: F401

        monitoring.register()
