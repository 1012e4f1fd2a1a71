"""Waiting for the runs in flight, and recording how they end."""

from __future__ import annotations

from django.db import Error as DatabaseError

from ..exceptions import StopSchedulerError
from .clock import Clock
from .engine import Engine

_ATTEMPTS_TO_RECORD = 10
_LOOK_AGAIN = 0.5


def drain(engine: Engine, clock: Clock, deadline: float | None) -> bool:
    """Wait until every run has ended and every result is recorded.

    Returns:
        whether nothing is left.

    Raises:
        StopSchedulerError: the runs have ended and their results cannot be recorded.
    """
    if not _settle_starts(engine, None if deadline is None else deadline - clock.monotonic()):
        return False
    refusals = 0
    while engine.unfinished:
        engine.write_down_stop(clock.now())
        if deadline is not None and clock.monotonic() >= deadline:
            return False
        refusal = _record(engine, clock)
        refusals = refusals + 1 if refusal is not None and not engine.running else 0
        if refusal is not None and refusals >= _ATTEMPTS_TO_RECORD:
            raise StopSchedulerError(refusal) from refusal
    return True


def _settle_starts(engine: Engine, seconds: float | None) -> bool:
    """Wait for the claim under way, if any; once it is over, nothing can start any more."""
    if not engine.gate.acquire(timeout=-1 if seconds is None else max(seconds, 0.0)):
        return False
    engine.gate.release()
    return True


def _record(engine: Engine, clock: Clock) -> DatabaseError | None:
    """Record what is waiting; then wait for the next end, where one is to come."""
    engine.woken.clear()
    refusal = None
    try:
        engine.record(clock.now())
    except DatabaseError as error:
        engine.refused("recording results", error, clock.now())
        refusal = error
    if engine.unfinished:
        clock.wait(engine.woken, _LOOK_AGAIN)
    return refusal
