"""The status of a task, the same in admin, commands and HTTP."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from .events import LATE
from .state import TaskState


class Status(StrEnum):
    """The statuses of a task, the most urgent first.

    Each has a symbol, so that colour is never the only sign.
    """

    symbol: str

    def __new__(cls, value: str, symbol: str = "") -> Status:
        """Make a status of its value and its symbol."""
        status = str.__new__(cls, value)
        status._value_, status.symbol = value, symbol
        return status

    BROKEN = "broken", "✖"
    INTERRUPTED = "interrupted", "↯"
    RUNNING = "running", "▶"
    QUEUED = "queued", "▷"
    DISABLED = "disabled", "□"
    PAUSED = "paused", "■"
    PAUSED_UNTIL = "paused_until", "◧"
    OVERDUE = "overdue", "▲"
    RETRYING = "retrying", "↻"
    ACTIVE = "active", "●"


def status_of(
    state: TaskState,
    now: datetime,
    *,
    next_run_at: datetime | None,
    broken: bool = False,
    enabled: bool = True,
    waits: bool = False,
    is_gone: bool = False,
) -> Status:
    """Return the status of a task."""
    if broken:
        return Status.BROKEN
    if state.running:
        return _occupied(waits=waits, is_gone=is_gone)
    return _pause(state, now, enabled) or _waiting(state, now, next_run_at)


def _occupied(*, waits: bool, is_gone: bool) -> Status:
    if is_gone:
        return Status.INTERRUPTED
    return Status.QUEUED if waits else Status.RUNNING


def _pause(state: TaskState, now: datetime, enabled: bool) -> Status | None:
    if not enabled:
        return Status.DISABLED
    if state.paused_since is None:
        return None
    if state.paused_until is None:
        return Status.PAUSED
    return Status.PAUSED_UNTIL if state.paused_until > now else None


def _waiting(state: TaskState, now: datetime, next_run_at: datetime | None) -> Status:
    since = due_since(state, next_run_at)
    if since is not None and now - since > LATE:
        return Status.OVERDUE
    return Status.ACTIVE if state.pending_retry_until is None else Status.RETRYING


def due_since(state: TaskState, next_run_at: datetime | None) -> datetime | None:
    """Return the earliest instant at which a start is or becomes due, or ``None``."""
    instants = (next_run_at, state.pending_retry_until, state.run_requested_at)
    return min((instant for instant in instants if instant is not None), default=None)
