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
    reporter = _reporter()
    if isinstance(value, Mapping):
        return {key: masked(reporter.cleanse_setting(key, each)) for key, each in value.items()}
    if isinstance(value, list):
        return [masked(each) for each in value]
    return value


def has_masks(value: Any) -> bool:
    """Return whether a mask is where a secret should be, as in an answer that is sent back.

    Args:
        value: JSON-native.
    """
    reporter = _reporter()
    if isinstance(value, Mapping):
        hidden = reporter.cleansed_substitute
        return any(
            has_masks(each) or each == hidden == reporter.cleanse_setting(key, each)
            for key, each in value.items()
        )
    return isinstance(value, list) and any(map(has_masks, value))


def _reporter() -> Any:
    reporter: Any = get_default_exception_reporter_filter()
    if isinstance(reporter, SafeExceptionReporterFilter):
        return reporter
    # The project's filter may be of any kind, and secrets are masked all the same.
    return SafeExceptionReporterFilter()
