"""What a scheduler process is to its deployment, in one word."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from ..conf import options
from ..models import SchedulerInstance
from ..store.status import gave_up


class Standing(StrEnum):
    """What people are told about a process; how it ended comes last."""

    LEADS = "leads"
    STANDS_BY = "stands_by"
    SUPERSEDED = "superseded"
    RUNS_ONLY = "runs_only"
    STOPPING = "stopping"
    HELD_UP = "held_up"
    SILENT = "silent"
    STOPPED = "stopped"
    LEFT = "left"
    LOST = "lost"


def standing_of(instance: SchedulerInstance, now: datetime) -> Standing:
    """Return the word for a process."""
    if gave_up(instance):
        return Standing.LEFT
    if instance.stopped_at is not None:
        # An orderly end is the last sign of life; whoever is found dead was silent before.
        in_order = instance.heartbeat_at >= instance.stopped_at
        return Standing.STOPPED if in_order else Standing.LOST
    if now - instance.heartbeat_at > options().LEASE:
        return Standing.SILENT
    if instance.mute_since is not None:
        # Its watchdog process vouches for its life; it does nothing by itself.
        return Standing.HELD_UP
    if instance.stop_requested_at is not None:
        return Standing.STOPPING
    if not instance.digest:
        return Standing.RUNS_ONLY
    state = instance.scheduler
    if state.leader_id == instance.pk:
        return Standing.LEADS
    return Standing.STANDS_BY if instance.digest == state.digest else Standing.SUPERSEDED
