"""The description of the HTTP binding in OpenAPI 3.1, kept in ``openapi.json``."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from .. import __version__


def document(prefix: str) -> dict[str, Any]:
    """Return the description, with the version and the URL prefix of this server."""
    text = (files(__package__) / "openapi.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    info = {**found["info"], "version": __version__}
    return {**found, "info": info, "servers": [{"url": prefix or "/"}]}
