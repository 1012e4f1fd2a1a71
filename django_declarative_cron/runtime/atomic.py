"""Calling a callback so that its database work and its success are one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..store import together
from ..store.guard import Member
from ..store.results import Result
from .clock import Clock
from .ended import committed


class RunCutShortError(RuntimeError):
    """Tell that a run was asked to end, so that what it wrote is rolled back."""


def atomically(
    member: Member, clock: Clock, call: Callable[[], Any], success: Callable[[Any], Result]
) -> Result:
    """Call, and write the success in the transaction of the call.

    Args:
        member: whose run it is.
        clock: for the instant of the record.
        call: calls the callback to its end.
        success: gives the result for what was returned.

    Raises:
        BaseException: the call failed, or its success could not be written with it; nothing
            of either is left in the database.
    """
    failed: list[BaseException] = []
    with together.transaction_of_run(member.using, failed):
        result = success(call())
        if not result.succeeded:
            raise RunCutShortError(result.error)
        together.record(member, result, clock.now())
    return committed(result, failed)
