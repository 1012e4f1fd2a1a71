"""What was declared, without its secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.views.debug import (
    SafeExceptionReporterFilter,
    get_default_exception_reporter_filter,
)


def masked(value: Any) -> Any:
    """Replace values whose key says that they are secret, as Django's error pages do.

    The project's ``DEFAULT_EXCEPTION_REPORTER_FILTER`` says which keys those are.

    Args:
        value: JSON-native.
    """
    reporter: Any = get_default_exception_reporter_filter()
    if not isinstance(reporter, SafeExceptionReporterFilter):
        # It may be of any kind; what it lacks is not to show a secret.
        reporter = SafeExceptionReporterFilter()
    if isinstance(value, Mapping):
        return {key: masked(reporter.cleanse_setting(key, each)) for key, each in value.items()}
    if isinstance(value, list):
        return [masked(each) for each in value]
    return value
