"""Take a type that another app has."""

from __future__ import annotations

from django_declarative_cron import handler


@handler("report.generate")
def generate() -> None: ...
