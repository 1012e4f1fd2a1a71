"""A task as clients know it: as the CronJob of 002, and as the other known servers show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..core.declarations.operating import KEYS as OPERATING
from ..formatting import iso8601
from ..models import ScheduledTask
from ..store.queries import next_start_of
from ..store.sentences import masked

_DEFAULTS: Final[Mapping[str, Any]] = {
    "timezone": "UTC",
    "args": [],
    "options": {},
    "overlap_policy": "skip",
    "enabled": True,
    "description": None,
    "gap": "skip",
    "fold": "first",
}
_STATE: Final = ("name", "enabled", "last_run_at", "next_run_at", "run_count", "created_at")
DECLARED: Final = ("name", "cron", "type", *_DEFAULTS)


def is_enabled(row: ScheduledTask) -> bool:
    """Return whether a task fires: enabled by its declaration, and paused by nobody."""
    return row.enabled and row.paused_since is None


def cron_job(row: ScheduledTask) -> dict[str, Any]:
    """Return a task as a CronJob (002 Field Definitions), with the values of secrets masked."""
    job = _cron_job(row)
    return {**job, "args": masked(job["args"]), "options": masked(job["options"])}


def _cron_job(row: ScheduledTask) -> dict[str, Any]:
    declared = row.declaration if isinstance(row.declaration, dict) else {}
    entry = declared.get("entry") or {}
    return {
        "name": row.name,
        "cron": row.cron,
        "timezone": row.timezone,
        "type": row.callback,
        "args": declared.get("args", []),
        "options": declared.get("options", {}),
        "overlap_policy": declared.get("overlap_policy", "skip"),
        "enabled": is_enabled(row),
        "description": row.description or None,
        **{key: entry[key] for key in ("gap", "fold", *OPERATING) if key in entry},
        "last_run_at": iso8601(row.last_attempt_at),
        "next_run_at": _next_run(row),
        "run_count": row.run_count,
        "created_at": iso8601(row.created_at or row.registered_at),
        **({"problem": row.broken_reason} if row.broken_reason else {}),
    }


def _next_run(row: ScheduledTask) -> str | None:
    # What is not enabled has no next run (CRON-28), though a pause may have an end.
    start = next_start_of(row) if is_enabled(row) else None
    return None if start is None else iso8601(start.at)


def cron(row: ScheduledTask) -> dict[str, Any]:
    """Return a task in the form with ``expression`` and ``job_template``."""
    job = cron_job(row)
    template = {key: job.pop(key) for key in ("type", "args", "options")}
    return {"name": job.pop("name"), "expression": job.pop("cron"), "job_template": template, **job}


def both(row: ScheduledTask, *, may_read: bool) -> dict[str, Any]:
    """Return a task in both envelopes, side by side."""
    told = {"cron_job": cron_job(row), "cron": cron(row)}
    if may_read:
        return told
    return {form: {key: job[key] for key in _STATE} for form, job in told.items()}


def says_the_same(row: ScheduledTask, entry: Mapping[str, Any]) -> bool:
    """Return whether an entry declares what a task is declared as already."""
    if not set(entry) <= set(DECLARED):
        return False
    # Who posts what was shown says what is shown of secrets.
    return any(
        _agrees({**known, "enabled": row.enabled}, entry)
        for known in (_cron_job(row), cron_job(row))
    )


def _agrees(known: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    return all(
        known.get(key, _DEFAULTS.get(key)) == entry.get(key, _DEFAULTS.get(key)) for key in DECLARED
    )
