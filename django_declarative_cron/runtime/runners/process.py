"""Calls in processes of their own: each is supervised from its call to its end."""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ... import signals
from ...core.declarations.declaration import Declaration, Target
from ...store.results import Result
from ..clock import Clock
from ..context import Tail
from ..outcome import cut_short, failed, storable
from ..work import Work
from . import process_protocol
from .fork_server_client import Conversation, ProcessesUnavailableError, Server
from .process_protocol import (
    MOST_AT_ONCE,
    UNHEARD,
    Lines,
    pack_member,
    pack_run,
    send_line,
    unpack_result,
)
from .thread import Pool

GRACE = 3.0
"""Seconds between the signal that asks a process to end and the one that ends it."""

LONGEST_START = 60.0
"""Seconds within which a process must begin, including the time its server loads Django."""

OUTPUT_LENGTH = 64 * 1024

_LOOK_AGAIN = 0.5
_PIECE = 4096


class RunLostError(RuntimeError):
    """Report how the process of a run ended without a result."""


class Supervision:
    """Read the messages of a run's process, and end it when it is to end.

    Args:
        work: the run.
        clock: for deadlines.
        server: which forked the process.
        conversation: with the process.
        limits: of the process.
    """

    def __init__(
        self,
        work: Work,
        clock: Clock,
        server: Server,
        conversation: Conversation,
        limits: Mapping[str, int],
    ) -> None:
        self._work = work
        self._clock = clock
        self._server = server
        self._talk, self._output = conversation.talk, conversation.output
        self._served_by = conversation.server
        self._limits = limits
        self._lines, self._printed = Lines(), Tail(OUTPUT_LENGTH)
        self._result: Result | None = None
        self._lost = ""
        self._kill_at: float | None = None
        self._end_at: float | None = clock.monotonic() + LONGEST_START
        self._has_begun = self._is_over = self._knows_of_stop = self._was_killed = False
        self._is_lost = False
        self._group: int | None = None

    def wait(self) -> Result | None:
        """Wait for the end of the process, and return the result.

        Returns:
            ``None`` where its server was lost before the run began: the callback was not
            called, and that process will not call it.
        """
        while not self._is_over:
            self._keep_to_time()
            self._pass_on()
            self._hear(self._seconds())
        self._read_output()
        if self._is_lost and not self._has_begun and not self._work.ending.asked.is_set():
            return None
        return self._outcome()

    def _seconds(self) -> float:
        now = self._clock.monotonic()
        moments = (self._end_at, self._kill_at)
        return min([_LOOK_AGAIN, *[max(at - now, 0.0) for at in moments if at is not None]])

    def _keep_to_time(self) -> None:
        now = self._clock.monotonic()
        if self._served_by.poll() is not None:
            self._cut_off()
        if self._end_at is not None and now >= self._end_at:
            self._end_at = None
            if self._result is not None:
                self._is_over = True  # A server that hangs does not report the exit.
            elif self._has_begun:
                self._work.ending.ask("timed_out")
            else:
                self._lost, self._kill_at = "the process did not begin in time", now
                self._server.replace(self._served_by)
        if self._kill_at is not None:
            if now >= self._kill_at:
                self._kill_at = now + GRACE
                self._kill()
        elif self._work.ending.why is not None:
            self._kill_at, self._end_at = now + GRACE, None
            self._say(ending=self._work.ending.why)

    def _kill(self) -> None:
        """Kill the process; do not rely on the server's report of its end a second time.

        A process that has not begun is not waited for: its server may be loading the project.
        """
        if self._was_killed or not self._has_begun:
            self._cut_off()
        self._was_killed = True
        self._kill_group()

    def _cut_off(self) -> None:
        """Kill the process, and read only messages already sent.

        A program that the run started may hold its end of the conversation open. A process
        that begins only now finds the conversation closed, and exits without a call.
        """
        self._kill_group()
        with suppress(OSError):
            self._talk.shutdown(socket.SHUT_RDWR)

    def _kill_group(self) -> None:
        if self._group is not None:
            with suppress(OSError):
                os.killpg(self._group, signal.SIGKILL)

    def _pass_on(self) -> None:
        if not self._knows_of_stop and self._work.run.stopping.is_set():
            self._knows_of_stop = True
            self._say(stopping=True)

    def _say(self, **said: Any) -> None:
        with suppress(OSError):
            send_line(self._talk, **said)

    def _hear(self, seconds: float) -> None:
        wanted = [self._talk.fileno()] + ([self._output] if self._output >= 0 else [])
        poll = select.poll()
        for descriptor in wanted:
            poll.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(seconds * 1000)}
        if self._output in ready:
            self._read_output()
        if self._talk.fileno() in ready:
            self._read_talk()

    def _read_talk(self) -> None:
        try:
            piece = self._talk.recv(MOST_AT_ONCE)
        except OSError:
            piece = b""
        if not piece:
            self._is_over = True
            self._is_lost = not self._lost
            self._cut_off()
            self._lost = self._lost or "the process that forks runs has ended"
        for said in self._lines.add(piece):
            self._take(said)

    def _take(self, said: dict[str, Any]) -> None:
        if "log" in said:
            self._work.tail.add(str(said["log"]))
        elif "ended" in said:
            self._result = unpack_result(said["ended"])
            self._end_at = self._clock.monotonic() + GRACE
        elif "began" in said:
            self._begin(int(said["began"]))
        elif "refused" in said:
            self._lost, self._is_over = f"no process could be forked: {said['refused']}", True
        elif "exit" in said:
            self._lost, self._is_over = self._lost or self._words_of(said["exit"]), True

    def _begin(self, group: int) -> None:
        """Measure the time limit from the begin of the run, not of its process."""
        self._group = group
        self._has_begun, timeout = True, self._work.timeout
        self._end_at = None if timeout is None else self._clock.monotonic() + timeout

    def _words_of(self, code: int) -> str:
        if code < 0:
            return f"ended by {process_protocol.words_of_signal(-code, self._limits)}"
        if code == UNHEARD:
            return "the callback closed descriptors that are not its own: how it ended is not known"
        return f"the process left with exit code {code} before the callback had ended"

    def _read_output(self) -> None:
        """Keep the output, and print it here where that does not block."""
        while self._output >= 0:
            try:
                piece = os.read(self._output, _PIECE)
            except BlockingIOError:
                return
            except OSError:
                piece = b""
            if not piece:
                self._output = -1
                return
            self._printed.add(piece.decode("utf-8", "backslashreplace"))
            _print(piece)

    def _outcome(self) -> Result:
        why, result = self._work.ending.settle(), self._result
        if result is None:
            lost = RunLostError(self._lost)
            result = failed(self._work, lost, self._clock.now())
            result = replace(result, traceback="")
        elif why is not None and not result.recorded:
            result = cut_short(self._work, result, why)
        log = storable(str(self._work.tail), OUTPUT_LENGTH)
        printed = storable(str(self._printed), OUTPUT_LENGTH)
        return replace(result, log=log, output=printed)


def _print(piece: bytes) -> None:
    poll = select.poll()
    with suppress(OSError):
        poll.register(2, select.POLLOUT)
        if any(event & select.POLLOUT for _, event in poll.poll(0)):
            os.write(2, piece)


_CALLS = 2
"""How many servers a run is given to, where the first one is lost before it begins."""


class ProcessRunner(Pool):
    """Call callbacks in processes."""

    def __init__(self, workers: int, clock: Clock) -> None:
        super().__init__("process", workers, clock, self._in_process)
        self.server = Server()

    def prepare(self, declarations: Iterable[Declaration]) -> None:
        """Make the server load the callbacks."""
        targets = [each.target for each in declarations if each.runner == "process"]
        if targets:
            try:
                self.server.start(_loaded(targets))
            except ProcessesUnavailableError as error:
                signals.report("Preparing for runs in processes", error, then="their runs fail")

    def close(self) -> None:
        """End threads and server, once every run has ended."""
        super().close()
        self.server.close()

    def _in_process(self, work: Work) -> Result:
        try:
            return in_process(work, self._clock, self.server)
        except Exception as error:
            return failed(work, error, self._clock.now())


def in_process(work: Work, clock: Clock, server: Server) -> Result:
    """Call a callback to its end in a process of its own.

    Raises:
        ProcessesUnavailableError: this process cannot start others.
        OSError: the system lacks the resources for another process.
    """
    for _ in range(_CALLS):
        result = _called(work, clock, server)
        if result is not None:
            return result
    lost = RunLostError(
        f"the process that forks runs was lost {_CALLS} times before it began"
        + (f": {server.last_words}" if server.last_words else "")
    )
    return failed(work, lost, clock.now())


def _called(work: Work, clock: Clock, server: Server) -> Result | None:
    """Call a callback; return ``None`` where the server was lost before the call."""
    options = {} if work.declaration is None else work.declaration.options
    bounds = process_protocol.limits_of(options)
    conversation = server.call()
    try:
        # If the process is gone already, the supervision finds out how it ended.
        with suppress(OSError):
            send_line(conversation.talk, **_order(work, bounds))
        return Supervision(work, clock, server, conversation, bounds).wait()
    finally:
        conversation.close()


def _loaded(targets: Iterable[Target]) -> Iterator[str]:
    """Return the paths that a server imports: none that came over HTTP."""
    return (each.text for each in targets if not (each.is_command or each.is_from_outside))


def _order(work: Work, bounds: dict[str, int]) -> dict[str, object]:
    return {
        "callback": work.target.text,
        "command": work.target.is_command,
        "outside": work.target.is_from_outside,
        "args": list(work.target.args),
        "limits": bounds,
        "trace": dict(work.trace),
        "member": None if work.member is None else pack_member(work.member),
        "run": pack_run(replace(work.run, id=work.id)),
    }
