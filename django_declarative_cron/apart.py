"""Calling a project's code that may hang: in a thread apart, with the connections of who calls.

Who calls waits, and after a while does not wait any more: the thread stays behind, and gets
no hand on a connection again. The connections are lent, so that the code sees what the
transaction around it has written. A query that the database refuses spoils nothing around
it, and nobody closes a connection whose transaction is another's. While the code is in the
middle of a query or a transaction of its own, its caller has nothing to go on with and waits.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from typing import Any

from django.db import connections, transaction

# A transaction of its own within the one around it keeps itself apart.
_OF_TRANSACTIONS = ("SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT")


class HungError(Exception):
    """Tell that a call has not ended."""


class Call:
    """One call, made in a thread apart.

    Args:
        function: what is called.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._context = copy_context()
        self._loans = [_Loan(each) for each in connections.all()]
        self._ended = threading.Event()
        self._value: Any = None
        self._error: BaseException | None = None

    @property
    def has_ended(self) -> bool:
        """Tell whether it has come to an end, also long after nobody waited any more."""
        return self._ended.is_set()

    def wait(self, seconds: float) -> Any:
        """Make the call, and give what it returned.

        Args:
            seconds: the longest wait.

        Raises:
            HungError: it has not ended.
            BaseException: what it raised.
        """
        with ExitStack() as stack:
            for loan in self._loans:
                stack.enter_context(loan.granted())
            thread = _idle()
            thread.calls.put(self)
            while not self._ended.wait(seconds):
                if all(loan.take_back() for loan in self._loans):
                    raise HungError
            _threads.append(thread)
        if self._error is not None:
            raise self._error
        return self._value

    def make(self) -> None:
        """Call the function, in the thread that is there for it."""
        own: Any = connections
        for loan in self._loans:
            own[loan.alias] = _Lent(loan)
        try:
            self._value = self._context.run(self._function)
        except BaseException as error:
            self._error = error
        finally:
            for loan in self._loans:
                with suppress(AttributeError):
                    del own[loan.alias]
            self._ended.set()


class _Loan:
    """A connection that is lent, until it is taken back.

    Args:
        connection: of the thread that lends it.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.alias: str = connection.alias
        self._depth = len(connection.savepoint_ids), connection.in_atomic_block
        self._queries = 0
        self._is_over = False
        self._lock = threading.RLock()

    @contextmanager
    def granted(self) -> Iterator[None]:
        """Let another thread use it, and undo what that thread leaves behind."""
        needed_rollback = self.connection.needs_rollback
        self.connection.inc_thread_sharing()
        try:
            with self.connection.execute_wrapper(self._execute):
                yield
        finally:
            self.connection.dec_thread_sharing()
            if self.connection.in_atomic_block:
                # Each query that failed has been undone by itself.
                self.connection.needs_rollback = needed_rollback

    def take_back(self) -> bool:
        """Take it back unless it is in use, and tell whether it is back."""
        with self._lock:
            now = len(self.connection.savepoint_ids), self.connection.in_atomic_block
            self._is_over = self._is_over or (not self._queries and now == self._depth)
            return self._is_over

    def used(self) -> Any:
        """Give the connection, as long as it is lent."""
        with self._lock:
            if self._is_over:
                raise HungError("nobody waits any more for what uses this connection")
            return self.connection

    def _is_spoilt_by(self, sql: str) -> bool:
        """Tell whether a query that is refused would spoil the transaction around it."""
        is_own_savepoint = sql.startswith(_OF_TRANSACTIONS)
        return self.connection.vendor == "postgresql" and self._depth[1] and not is_own_savepoint

    def _execute(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        with self._lock:
            self.used()
            self._queries += 1
        try:
            if self._queries > 1 or not self._is_spoilt_by(sql):
                return execute(sql, params, many, context)
            with transaction.atomic(self.alias):
                return execute(sql, params, many, context)
        finally:
            self._queries -= 1


class _Lent:
    """A connection as the code sees it: everything but its end."""

    def __init__(self, loan: _Loan) -> None:
        object.__setattr__(self, "_loan", loan)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loan.used(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._loan.used(), name, value)

    def close(self) -> None:
        """Close it, where no transaction of another needs it."""
        connection = self._loan.used()
        if connection.in_atomic_block:
            raise RuntimeError("it closes a connection whose transaction is not its own")
        connection.close()


class _Thread(threading.Thread):
    """A thread that makes calls, one after another; whoever has taken it has it alone."""

    def __init__(self) -> None:
        # A daemon: what hangs does not keep the process from ending.
        super().__init__(name="declarative-cron-apart", daemon=True)
        self.calls: queue.SimpleQueue[Call] = queue.SimpleQueue()
        self.process = os.getpid()

    def run(self) -> None:
        """Make what calls come."""
        while True:
            self.calls.get().make()


def _idle() -> _Thread:
    while _threads:
        with suppress(IndexError):
            thread = _threads.pop()
            # A process that was forked has none of the threads of its parent.
            if thread.process == os.getpid():
                return thread
    thread = _Thread()
    thread.start()
    return thread


_threads: list[_Thread] = []
