"""A task's state as plain data: carried out of a database and into another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ...exceptions import TaskInvalidValueError
from ..decoding import Stored, decode_cron, plain_instant
from .fold import TaskState

_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class StoredState(TaskState):
    """A task's state with what a stored task record says of its declaration.

    Args:
        cron: raw text of the expression.
        retry_delay: from the end of a failed run.
        timezone: IANA name, ``None`` where the record does not say.
        dialect: of the expression.
        scheduler_identifier: of the deployment it belongs to (001 Scheduler Identifier).
    """

    cron: str
    retry_delay: timedelta
    timezone: str | None = None
    dialect: str = "posix"
    scheduler_identifier: str | None = None


_INSTANTS = {
    "last_attempt_at": "lastAttemptAt",
    "last_success_at": "lastSuccessAt",
    "pending_retry_until": "pendingRetryUntil",
    "discharged_at": "dischargedAt",
    "occurrence_at": "occurrenceAt",
    "freed_at": "freedAt",
    "boot_at": "bootAt",
    "paused_since": "pausedSince",
    "paused_until": "pausedUntil",
    "run_requested_at": "runRequestedAt",
    "skip_at": "skipAt",
}
_COUNTS = {
    "attempt": "attempt",
    "failures": "failures",
    "interruptions": "interruptions",
    "waiting": "waiting",
    "run_count": "runCount",
}
_FLAGS = {"orphaned": "orphaned", "running": "running"}


def serialize(state: StoredState) -> dict[str, Any]:
    """Return a state as JSON-native data, in the spelling of the specification."""
    whole, rest = divmod(state.retry_delay, _MILLISECOND)
    data: dict[str, Any] = {
        "name": state.name,
        "cronExpression": state.cron,
        "dialect": state.dialect,
        "timezone": state.timezone,
        "retryDelayMs": whole,
        "schedulerIdentifier": state.scheduler_identifier,
        "registeredAt": plain_instant(state.registered_at),
    }
    if rest:
        data["retryDelayRestUs"] = rest.microseconds
    data |= {key: plain_instant(getattr(state, field)) for field, key in _INSTANTS.items()}
    return data | {key: getattr(state, field) for field, key in (_COUNTS | _FLAGS).items()}


def deserialize(data: Any, registrations: Iterable[Any]) -> StoredState:
    """Read a state from plain data (001 Task State Management Errors).

    Name, expression and delay are required; the rest is optional. A record that does
    not say since when its task is registered owes nothing from before its newest run.

    Raises:
        TaskInvalidStructureError: the record is no object.
        TaskMissingFieldError: a required field is missing.
        TaskInvalidTypeError: a field is of another type.
        TaskInvalidValueError: a field has a value that means nothing, or the task is not
            registered.
    """
    stored = Stored(data)
    stored.require("name", "cronExpression", "retryDelayMs")
    name, cron = stored.text("name"), stored.text("cronExpression")
    delay = stored.delay("retryDelayMs")
    if name not in {_name_of(registration) for registration in registrations}:
        raise TaskInvalidValueError("name", name, "is not the name of a registered task")
    dialect = stored.text_or_none("dialect") or "posix"
    decode_cron(cron, dialect)
    values: dict[str, Any] = {field: stored.instant(key) for field, key in _INSTANTS.items()}
    newest = max(values["last_attempt_at"] or _EPOCH, values["last_success_at"] or _EPOCH)
    values |= {field: stored.count(key) for field, key in _COUNTS.items()}
    values |= {field: stored.flag(key) for field, key in _FLAGS.items()}
    return StoredState(
        name=name,
        cron=cron,
        retry_delay=delay + timedelta(microseconds=stored.count("retryDelayRestUs")),
        timezone=stored.text_or_none("timezone"),
        dialect=dialect,
        scheduler_identifier=stored.text_or_none("schedulerIdentifier"),
        registered_at=stored.instant("registeredAt") or newest,
        **values,
    )


def _name_of(registration: Any) -> Any:
    match registration:
        case [name, *_]:
            return name
        case Mapping():
            return registration.get("name")
    return getattr(registration, "name", registration)
