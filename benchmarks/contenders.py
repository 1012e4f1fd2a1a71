"""The schedulers that are measured: the product and its peers, all in one environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import django_declarative_cron


@dataclass(frozen=True)
class Contender:
    """One scheduler.

    Args:
        id: name of its function in each module.
        label: its name in tables.
        distribution: its name on PyPI.
        apps: the Django apps that its project adds.
        settings: the Django settings that its project adds.
    """

    id: str
    label: str
    distribution: str
    apps: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def version(self) -> str | None:
        """Return its version, ``None`` if it is not installed."""
        if self.id == "product":
            return django_declarative_cron.__version__
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return None


CONTENDERS = {
    each.id: each
    for each in (
        Contender(
            "product",
            "declarative-cron",
            "django-declarative-cron",
            ("django_declarative_cron",),
        ),
        Contender("apscheduler", "APScheduler", "apscheduler"),
        Contender(
            "celery_beat",
            "django-celery-beat",
            "django-celery-beat",
            ("django_celery_beat",),
            {"CELERY_BROKER_URL": "memory://", "DJANGO_CELERY_BEAT_TZ_AWARE": True},
        ),
        Contender(
            "django_q2",
            "django-q2",
            "django-q2",
            ("django_q",),
            {"Q_CLUSTER": {"name": "bench", "orm": "default", "workers": 2, "save_limit": 0}},
        ),
        Contender("procrastinate", "procrastinate", "procrastinate"),
    )
}
