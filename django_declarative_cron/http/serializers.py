"""Serialize a task: as the CronJob of 002, and in the form of other known servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..core.declarations.declaration import OPERATING
from ..core.overlap import DEFAULT_POLICY, POLICY_OF_SHORT_FORM
from ..formatting import iso8601
from ..models import ScheduledTask
from ..store.queries import next_start_of
from ..store.sentences import masked

_DEFAULTS: Final[Mapping[str, Any]] = {
    "timezone": "UTC",
    "args": [],
    "options": {},
    "overlap_policy": DEFAULT_POLICY,
    "enabled": True,
    "description": None,
    "gap": "skip",
    "fold": "first",
}
_STATE: Final = ("name", "enabled", "last_run_at", "next_run_at", "run_count", "created_at")
DECLARED: Final = ("name", "cron", "type", *_DEFAULTS)


def is_enabled(row: ScheduledTask) -> bool:
    """Return whether a task is enabled by its declaration and not paused."""
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
        "overlap_policy": declared.get("overlap_policy", POLICY_OF_SHORT_FORM),
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
    # A task that is not enabled has no next run (CRON-28), even if its pause has an end.
    start = next_start_of(row) if is_enabled(row) else None
    return None if start is None else iso8601(start.at)


def cron(row: ScheduledTask) -> dict[str, Any]:
    """Return a task in the form with ``expression`` and ``job_template``."""
    job = cron_job(row)
    template = {key: job.pop(key) for key in ("type", "args", "options")}
    return {"name": job.pop("name"), "expression": job.pop("cron"), "job_template": template, **job}


def both(row: ScheduledTask, *, may_read: bool) -> dict[str, Any]:
    """Return a task in both forms; without the right to read, only its state."""
    forms = {"cron_job": cron_job(row), "cron": cron(row)}
    if may_read:
        return forms
    return {form: {key: job[key] for key in _STATE} for form, job in forms.items()}


def is_same(row: ScheduledTask, entry: Mapping[str, Any]) -> bool:
    if not set(entry) <= set(DECLARED):
        return False
    # A client may post the entry that it got, in which secrets are masked.
    return any(
        _agrees({**known, "enabled": row.enabled}, entry)
        for known in (_cron_job(row), cron_job(row))
    )


def _agrees(known: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    return all(
        known.get(key, _DEFAULTS.get(key)) == entry.get(key, _DEFAULTS.get(key)) for key in DECLARED
    )
