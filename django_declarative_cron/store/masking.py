"""What was declared, without its secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.views.debug import SafeExceptionReporterFilter


def masked(value: Any) -> Any:
    """Replace values whose key says that they are secret, as Django's error pages do.

    Args:
        value: JSON-native.
    """
    reporter = SafeExceptionReporterFilter()
    if isinstance(value, Mapping):
        return {key: masked(reporter.cleanse_setting(key, each)) for key, each in value.items()}
    if isinstance(value, list):
        return [masked(each) for each in value]
    return value
