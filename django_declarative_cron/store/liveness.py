"""Whether the process of a run is gone before any scheduler has noticed; nothing is written here.

Without a leader nobody ends the runs of a dead process, so that pages and commands have to look
at the heartbeat themselves.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q
from django.utils.dateparse import parse_datetime

from ..conf import options
from ..models import Outcome, TaskRun

PATIENCE = timedelta(seconds=30)
"""How old a heartbeat may be unless the options allow more."""

ALIVE_UNTIL = "alive_until"
"""Key in the detail of an interrupted run: the last sign of life of its process."""


def patience(lease: timedelta) -> timedelta:
    """Return how old the newest heartbeat of a living deployment may be.

    Args:
        lease: of the deployment; a heartbeat comes several times within it.
    """
    return max(PATIENCE, lease)


def silent_since(now: datetime) -> datetime:
    """Return the newest heartbeat of a process that counts as gone.

    Args:
        now: the instant of looking.
    """
    ours = options()
    return now - max(patience(ours.LEASE), ours.longest_silence)


def is_gone(now: datetime) -> Q:
    """Return the condition of the runs that nothing carries on any more.

    Args:
        now: the instant of looking.
    """
    silent = Q(instance=None) | Q(instance__stopped_at__isnull=False)
    silent |= Q(instance__heartbeat_at__lte=silent_since(now))
    worker = Q(reservation__isnull=False, reserved_until__lte=now)
    return Q(outcome=Outcome.RUNNING) & (worker | Q(silent, reservation=None))


def is_interrupted(now: datetime) -> Exists:
    """Ask, in a query on tasks, whether nothing carries on the run of a task any more.

    Args:
        now: the instant of looking.
    """
    return Exists(TaskRun.objects.filter(is_gone(now), pk=OuterRef("running_run")))


def gone_since(run: TaskRun, now: datetime) -> datetime | None:
    """Return the last sign of life of the process of a run, ``None`` while it lives.

    Args:
        run: with its instance.
        now: the instant of looking.
    """
    if run.outcome != Outcome.RUNNING:
        return None
    if run.reservation is not None:
        until: datetime | None = run.reserved_until
        return None if until is None or until > now else until
    instance = run.instance
    if instance is None:
        return last_sign_of_life(run)
    if instance.stopped_at is None and instance.heartbeat_at > silent_since(now):
        return None
    return last_sign_of_life(run)


def last_sign_of_life(run: TaskRun) -> datetime | None:
    """Return when the process of a run was heard of last, no earlier than the run began.

    Args:
        run: with its instance.
    """
    heard = None if run.instance is None else run.instance.mute_since or run.instance.heartbeat_at
    signs: list[datetime] = [each for each in (run.started_at, heard) if each is not None]
    return max(signs, default=None)


def shown_outcome(run: TaskRun, now: datetime) -> str:
    """Return the outcome of a run for people: a run of a dead process is interrupted.

    Args:
        run: with its instance.
        now: the instant of looking.
    """
    return run.outcome if gone_since(run, now) is None else Outcome.INTERRUPTED


def shown_end(run: TaskRun, now: datetime) -> datetime | None:
    """Return the end of a run for people: that of an interrupted run is the last sign of life.

    A scheduler finds a dead process later, and ``finished_at`` is when it did.

    Args:
        run: with its instance.
        now: the instant of looking.
    """
    gone = gone_since(run, now)
    return end_of(run.outcome, run.finished_at, run.detail) if gone is None else gone


def end_of(outcome: str, finished_at: datetime | None, detail: object) -> datetime | None:
    """Return the end of a run from its columns, without asking for its process.

    Args:
        outcome: of the run.
        finished_at: its recorded end.
        detail: its column.
    """
    if outcome != Outcome.INTERRUPTED or not isinstance(detail, dict):
        return finished_at
    return _instant(detail.get(ALIVE_UNTIL)) or finished_at


def _instant(text: object) -> datetime | None:
    try:
        return parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        return None
