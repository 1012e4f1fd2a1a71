"""Cleaning up after coroutines: once for all that have ended when it begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from asgiref.sync import sync_to_async

from .. import connections

LONGEST = 0.1
"""Seconds for which cleaning up is put off at most."""

_STEP = 0.002


class Tidying:
    """Clean up in the thread that the sync parts of all coroutines of one loop share.

    Each way to that thread and back costs more than the cleaning; where many end at the same
    time, those that end before it begins go together. It is put off while runs are about to be
    called: they need the interpreter.

    Args:
        quiet: tells whether whatever can wait had better wait.
    """

    def __init__(self, quiet: Callable[[], bool] = bool) -> None:
        self._quiet = quiet
        self._next: list[asyncio.Future[None]] | None = None
        self._under_way: set[asyncio.Future[None]] = set()

    async def clean_up(self) -> None:
        """Let nothing of a coroutine that has ended reach the next one.

        Raises:
            TransactionLeftOpenError: a transaction was left open. Whose it was, nobody knows, and
                what any of those wrote that go together may be lost with it: it is said to each.
            Exception: whatever else went wrong is said to the first of them.
        """
        waiting = self._another() if self._next is None else self._next
        is_first, over = not waiting, asyncio.get_running_loop().create_future()
        waiting.append(over)
        try:
            await over
        except connections.TransactionLeftOpenError as error:
            raise connections.TransactionLeftOpenError(
                f"of this and of whatever ended together with it on the event loop: {error}"
            ) from None
        except Exception:
            if is_first:
                raise

    async def end(self) -> None:
        """Wait for what is under way: who asked for it may have been cancelled meanwhile."""
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _another(self) -> list[asyncio.Future[None]]:
        waiting: list[asyncio.Future[None]] = []
        self._next = waiting
        going = asyncio.ensure_future(self._together())
        self._under_way.add(going)
        going.add_done_callback(partial(self._over, waiting))
        return waiting

    def _over(self, waiting: list[asyncio.Future[None]], going: asyncio.Future[None]) -> None:
        """Say how it ended to all who wait for it still: nobody does who was cancelled."""
        self._under_way.discard(going)
        if self._next is waiting:
            self._next = None
        error = asyncio.CancelledError() if going.cancelled() else going.exception()
        for over in waiting:
            if over.done():
                continue
            if error is None:
                over.set_result(None)
            else:
                over.set_exception(error)

    async def _together(self) -> None:
        end = asyncio.get_running_loop().time() + LONGEST
        while self._quiet() and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(_STEP)
        await sync_to_async(self._begin)()

    def _begin(self) -> None:
        # From here on another one is needed: what ends now may have left something already.
        self._next = None
        connections.clean_up()
