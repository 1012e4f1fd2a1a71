"""Callbacks in processes of their own, which can be ended.

Each run is forked from a server that has Django loaded (``fork_server``), so that its start
costs milliseconds. A thread of the pool looks after it (``supervision``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from ... import signals
from ...core.declaration import Declaration, Target
from ...store.results import Result
from ..clock import Clock
from ..ended import failed
from ..work import Work
from . import limits
from .pool import Pool
from .server import ProcessesUnavailableError, Server
from .supervision import RunLostError, Supervision
from .wire import pack_member, send_line

_CALLS = 2
"""How often a run is given to a server: again to another one, where the first was lost."""


class ProcessRunner(Pool):
    """Call callbacks in at most so many processes at a time.

    Args:
        workers: size of the pool.
        clock: dates the ends of runs.
    """

    def __init__(self, workers: int, clock: Clock) -> None:
        super().__init__("process", workers, clock, self._in_process)
        self.server = Server()

    def prepare(self, declarations: Iterable[Declaration]) -> None:
        """Let the server load what is going to run.

        Args:
            declarations: a registration set.
        """
        targets = [each.target for each in declarations if each.runner == "process"]
        if targets:
            try:
                self.server.start(_loaded(targets))
            except ProcessesUnavailableError as error:
                signals.report("Preparing for runs in processes", error, then="their runs fail")

    def close(self) -> None:
        """Let threads and server end; to be called when every run has ended."""
        super().close()
        self.server.close()

    def _in_process(self, work: Work) -> Result:
        began = self._clock.monotonic()
        try:
            return in_process(work, self._clock, self.server)
        except Exception as error:
            return failed(work, error, self._clock.now(), self._clock.monotonic() - began)


def in_process(work: Work, clock: Clock, server: Server) -> Result:
    """Call a callback to its end in a process of its own.

    Args:
        work: the claimed run.
        clock: for the end's instant and the duration.
        server: forks the process.

    Raises:
        ProcessesUnavailableError: there is no way.
        OSError: the system lacks what it needs for another process.
    """
    for _ in range(_CALLS):
        result = _called(work, clock, server)
        if result is not None:
            return result
    lost = RunLostError(
        f"the process that forks runs was lost {_CALLS} times before it began"
        + (f": {server.last_words}" if server.last_words else "")
    )
    return failed(work, lost, clock.now(), 0.0)


def _called(work: Work, clock: Clock, server: Server) -> Result | None:
    """Call a callback; ``None`` where the server was lost before it was called."""
    options = {} if work.declaration is None else work.declaration.options
    bounds = limits.of(options)
    conversation = server.call(work.id)
    try:
        # Should it be gone, how it left is to be heard.
        with suppress(OSError):
            send_line(conversation.talk, **_order(work, bounds))
        return Supervision(work, clock, server, conversation, bounds).wait()
    finally:
        conversation.close()


def _loaded(targets: Iterable[Target]) -> Iterator[str]:
    """Give what a server imports ahead: nothing that came over HTTP."""
    return (each.text for each in targets if not (each.is_command or each.is_from_outside))


def _order(work: Work, bounds: dict[str, int]) -> dict[str, object]:
    run = work.run
    return {
        "id": work.id,
        "callback": work.target.text,
        "command": work.target.is_command,
        "outside": work.target.is_from_outside,
        "args": list(work.target.args),
        "limits": bounds,
        "trace": dict(work.trace),
        "member": None if work.member is None else pack_member(work.member),
        "run": {
            "task_name": run.task_name,
            "scheduled_for": run.scheduled_for.isoformat(),
            "started_at": run.started_at.isoformat(),
            "attempt": run.attempt,
            "reason": run.reason,
            "timezone": run.timezone,
            "meta": dict(run.meta),
            "max_attempts": run.max_attempts,
        },
    }
