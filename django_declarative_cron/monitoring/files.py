"""The files of the package for Grafana (dashboard) and Prometheus (alert rules)."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

FILES: Final = {"dashboard": "grafana-dashboard.json", "alerts": "prometheus-alerts.yml"}


def text_of(name: str) -> str:
    """Return the text of a file."""
    return (files(__package__) / "files" / FILES[name]).read_text(encoding="utf-8")
