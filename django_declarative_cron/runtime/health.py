"""Whether a scheduler lives and works, from what it says of itself; nothing is asked here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .pulse import LIMIT
from .scheduler import Scheduler, State

LONGEST_START = 300.0
"""Seconds that the first initialisation may take before the process counts as hanging."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a probe is told.

    Args:
        live: a restart would not help; the loop turns, whatever the database does.
        ready: it leads, or would take over.
        reasons: why it is not live or not ready, in words for people.
        facts: about the process, JSON-native.
    """

    live: bool
    ready: bool
    reasons: tuple[str, ...]
    facts: dict[str, Any]

    @property
    def line(self) -> str:
        """Say it in one line."""
        tasks, running = self.facts["tasks"], self.facts["running"]
        plural = "" if tasks == 1 else "s"
        words = f"{self.facts['standing']}, {tasks} task{plural}, {running} running"
        return "; ".join([words, *self.reasons])


def report(scheduler: Scheduler) -> Report:
    """Tell how a scheduler is; takes no lock and asks no database.

    Args:
        scheduler: one with a loop.
    """
    dead, idle = list(_not_live(scheduler)), list(_not_ready(scheduler))
    pulse = scheduler.pulse
    facts = {
        "state": str(scheduler.state),
        "standing": str(scheduler.standing.value),
        "instance": str(scheduler.id),
        "tasks": len(scheduler.declarations),
        "running": scheduler.running,
        "passes": pulse.last.passes,
        "seconds_since_pass": round(pulse.age(), 1),
    }
    return Report(not dead, not (dead or idle), (*dead, *idle), facts)


def _not_live(scheduler: Scheduler) -> Iterator[str]:
    pulse, state = scheduler.pulse, scheduler.state
    if state in (State.UNINITIALIZED, State.INITIALIZING):
        if pulse.age() > LONGEST_START:
            yield f"the initialisation has taken {pulse.age():.0f} s, longer than it may"
    elif state in (State.RUNNING, State.REINITIALIZING):
        if not scheduler.is_alive:
            yield "the loop or the heartbeat has ended"
        elif pulse.is_late():
            yield f"the loop has not turned for {pulse.age():.0f} s (the limit is {LIMIT:.0f} s)"


def _not_ready(scheduler: Scheduler) -> Iterator[str]:
    state = scheduler.state
    if state in (State.UNINITIALIZED, State.INITIALIZING):
        yield "not initialised yet"
    elif state in (State.STOPPING, State.STOPPED):
        yield "stopping: nothing new starts"
    refused = scheduler.pulse.last.refused
    if refused:
        yield f"the database refused the newest pass ({refused})"
