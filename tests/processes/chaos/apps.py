"""The storm's own app: it has no models, and meddles with the clock where it is told to."""

from __future__ import annotations

from django.apps import AppConfig

from . import clocks


class ChaosConfig(AppConfig):
    """Installed in the project of the schedulers."""

    name = "tests.processes.chaos"
    label = "chaos"

    def ready(self) -> None:
        clocks.put_in_place()
