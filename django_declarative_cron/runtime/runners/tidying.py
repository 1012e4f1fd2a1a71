"""Cleaning up after coroutines: once for all that have ended when it begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

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
        self._next: asyncio.Future[None] | None = None
        self._under_way: set[asyncio.Future[None]] = set()

    async def clean_up(self) -> None:
        """Let nothing of a coroutine that has ended reach the next one.

        Raises:
            TransactionLeftOpenError: a transaction was left open. Whose it was, nobody knows, and
                what any of those wrote that go together may be lost with it: it is said to each.
            Exception: whatever else went wrong is said to the first of them.
        """
        going = self._next
        is_first = going is None or going.done()
        if going is None or going.done():
            self._next = going = self._another()
        try:
            await asyncio.shield(going)
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

    def _another(self) -> asyncio.Future[None]:
        going = asyncio.ensure_future(self._together())
        self._under_way.add(going)
        going.add_done_callback(self._over)
        return going

    def _over(self, going: asyncio.Future[None]) -> None:
        self._under_way.discard(going)
        if not going.cancelled():
            going.exception()  # Nobody asks where all that waited for it were cancelled.

    async def _together(self) -> None:
        end = asyncio.get_running_loop().time() + LONGEST
        while self._quiet() and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(_STEP)
        await sync_to_async(self._begin)()

    def _begin(self) -> None:
        # From here on another one is needed: what ends now may have left something already.
        self._next = None
        connections.clean_up()
