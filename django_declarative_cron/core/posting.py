"""A CronJob object as it comes over HTTP, brought into the form of a dict entry; pure.

Clients of Open Job Spec differ: the expression is called ``cron`` or ``expression``, and
what runs stands beside it or in ``job_template``. Here each becomes the form that
``SCHEDULED_TASKS`` has, so that one reader judges both. What a caller from outside may not
say, such as an import path, is refused by name before that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from .entry_keys import MANAGED

IGNORED: Final = (*MANAGED, "id", "status", "state", "updated_at", "last_job_id", "specversion")
"""Keys that only the scheduler sets (CRON-06), as the known clients spell them."""

FORBIDDEN: Final = ("callback", "command", "dialect", "retry_delay", "runner", "atomic")
"""Keys of a dict entry that decide on code, and are for those who have it."""

_INTO_OPTIONS: Final = ("queue", "timeout", "timeout_ms", "retry", "tags", "meta")
_TEMPLATE: Final = "job_template"


class PostingError(ValueError):
    """Refuse an object before the reader of entries sees it.

    Args:
        field: the key that is wrong.
        reason: what is wrong, readable after the name of the key.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field = field
        self.reason = reason


def entry_of(posted: Mapping[str, Any]) -> dict[str, Any]:
    """Give the dict entry that a posted object stands for (002 Complete CronJob Object).

    Args:
        posted: the JSON object, as a client sent it.

    Raises:
        PostingError: it says something twice, or what nobody may say from outside.
    """
    entry = {key: value for key, value in posted.items() if key not in IGNORED}
    for key, value in _template_of(entry):
        _put(entry, key, value, f"{_TEMPLATE}.{key}")
    if "expression" in entry:
        _put(entry, "cron", entry.pop("expression"), "expression")
    _refuse_forbidden(entry)
    _gather_options(entry)
    return {key: value for key, value in entry.items() if value is not None}


def _template_of(entry: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    template = entry.pop(_TEMPLATE, None)
    if template is None:
        return
    if not isinstance(template, dict):
        raise PostingError(_TEMPLATE, "must be an object")
    for key, value in template.items():
        if key not in ("type", "args", "options", *_INTO_OPTIONS, *IGNORED):
            raise PostingError(f"{_TEMPLATE}.{key}", "is no known key")
        if key not in IGNORED:
            yield key, value


def _put(entry: dict[str, Any], key: str, value: Any, said_as: str) -> None:
    if entry.get(key) is not None and entry[key] != value:
        raise PostingError(said_as, f"contradicts `{key}`: one of them says it")
    entry[key] = value


def _refuse_forbidden(entry: Mapping[str, Any]) -> None:
    for key in FORBIDDEN:
        if key in entry:
            raise PostingError(key, "cannot be said over HTTP: it is for SCHEDULED_TASKS")


def _gather_options(entry: dict[str, Any]) -> None:
    """Bring what clients write beside ``options`` into it, with durations as 002 has them."""
    beside = {key: entry.pop(key) for key in _INTO_OPTIONS if key in entry}
    options = entry.get("options")
    if not isinstance(options, dict | None):
        return
    options = {key: value for key, value in (options or {}).items() if value is not None}
    for key, value in beside.items():
        if value is not None:
            _put(options, key, value, key)
    if "timeout_ms" in options:
        _put(options, "timeout", _whole_seconds(options.pop("timeout_ms")), "timeout_ms")
    if isinstance(options.get("retry"), dict):
        options["retry"] = _with_durations(options["retry"])
    if options or "options" in entry:
        entry["options"] = options


def _whole_seconds(milliseconds: Any) -> int:
    return math.ceil(_number(milliseconds, "options.timeout_ms") / 1000)


def _with_durations(retry: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in retry.items() if value is not None}
    for key in ("initial_interval", "max_interval"):
        if f"{key}_ms" in found:
            number = _number(found.pop(f"{key}_ms"), f"options.retry.{key}_ms")
            _put(found, key, f"PT{number / 1000:.3f}S", f"options.retry.{key}_ms")
    return found


def _number(value: Any, field: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1e12:
        raise PostingError(field, "must be a number of milliseconds")
    return float(value)
