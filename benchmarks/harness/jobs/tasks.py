"""The same for engines of Django's Tasks; only where Django has them."""

from __future__ import annotations

from django.tasks import task


@task()
def nothing() -> None:
    """Do nothing."""
