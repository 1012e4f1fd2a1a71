"""The last write of a transaction, and what goes behind it on the same way: a look, and the commit.

Where that can be, it spares two ways to the server and back. The look is asked in the
transaction, so it sees what was written, and all that others have committed by then. Acts of
people and other evaluating transactions cannot come in between: they wait for the deployment's
row. What does not, a heartbeat for one, is seen as it was a moment before the commit.

The look goes ahead of the commit, for what fails behind a commit would look as if nothing had
been committed. So whatever the text brings about, it is whole: either it was committed and the
answer is there, or nothing was. An answer that cannot be read is none: who looks asks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.db import Error

from . import limits, planned


class Last:
    """What goes behind a write; nothing, unless it is the last one.

    Args:
        way: of the transaction that ends with it; ``None`` where others may follow.
        look: as SQL that goes with parameters; empty where nobody looks.
    """

    def __init__(self, way: limits.Way | None = None, look: str = "") -> None:
        self._way = way
        self._look = look
        self.row: tuple[Any, ...] | None = None

    def send(self, cursor: Any, statements: Sequence[str], parameters: Sequence[Any]) -> None:
        """Send the write, and what goes behind it.

        Args:
            cursor: of Django's.
            statements: of the write.
            parameters: of all of them.
        """
        if self._way is None:
            cursor.execute("; ".join(statements), parameters)
            return
        # Committed with it, so it is done again where the session has forgotten its words.
        known = [planned.with_places(cursor.db, sql) for sql in statements]
        text = "; ".join(filter(None, (*known, self._look, "COMMIT")))
        self._way.end_with(text)
        cursor.execute(text, parameters)

    def read(self, cursor: Any) -> None:
        """Take what the look has found.

        Args:
            cursor: that has sent the write, and of which nothing else is read.
        """
        while self._look and self.row is None and cursor.nextset():
            if limits.has_rows(cursor):
                # It is committed by now: what fails here would leave it uncalled.
                with suppress(Error):
                    self.row = cursor.fetchone()
                return


OTHERS_FOLLOW = Last()
