"""The scheduler's side of its fork server: started when it is needed, and again when it is lost.

Lost is one that died, and one that says nothing any more (``silence``), which is ended.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from ... import signals
from .. import forking
from ..clock import Clock, system_clock
from ..descriptors import out_of_the_way
from . import entry
from .silence import Silence
from .wire import FORK, MESSAGE, SIGNAL, close_quietly

_LONGEST_FAREWELL = 2.0
_LONGEST_SENDING = 5.0
_SETTINGS = "DJANGO_SETTINGS_MODULE"


class ProcessesUnavailableError(RuntimeError):
    """Tell why a run cannot be called in a process of its own."""


class SilentServerError(RuntimeError):
    """Tell that a fork server has been given up, because it says nothing."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the scheduler has of the process of a run.

    Args:
        talk: what is said to and fro.
        output: where what it prints is read.
        is_served: tells whether the server that forks it serves.
    """

    talk: socket.socket
    output: int
    is_served: Callable[[], bool]

    def close(self) -> None:
        """Say and hear nothing more."""
        self.talk.close()
        close_quietly(self.output)


class Server:
    """A fork server, from the first run that needs it to the last.

    Args:
        clock: measures how long it says nothing.
    """

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._silence: Silence | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._paths: set[str] = set()
        self._errors: IO[bytes] | None = None
        self.last_words = ""
        self._lock = threading.Lock()

    def start(self, paths: Iterable[str]) -> None:
        """Let it load Django meanwhile; where it runs already it stays as it is.

        Args:
            paths: of what is going to run, to be loaded with it.

        Raises:
            ProcessesUnavailableError: there is no way.
        """
        with self._lock:
            self._paths.update(paths)
            self._living()

    def call(self, key: int) -> Conversation:
        """Begin the process of a run.

        Args:
            key: of the run.

        Raises:
            ProcessesUnavailableError: there is no way.
            OSError: there are no descriptors left.
        """
        mine, theirs = socket.socketpair()
        try:
            read, write = os.pipe()
        except OSError:
            mine.close()
            theirs.close()
            raise
        message = MESSAGE.pack(FORK, key, 0)
        try:
            with self._lock:
                process = self._send(message, [theirs.fileno(), write])
        except BaseException:
            mine.close()
            close_quietly(read)
            raise
        finally:
            theirs.close()
            close_quietly(write)
        os.set_blocking(read, False)
        forking.close_in_children(mine.fileno(), read)
        return Conversation(mine, read, lambda: self._serves(process))

    def signal(self, key: int, number: int) -> None:
        """Send a signal to the group of a run.

        Args:
            key: of the run.
            number: of the signal.
        """
        with self._lock, suppress(OSError):
            if self._control is not None:
                self._control.sendall(MESSAGE.pack(SIGNAL, key, number))

    def close(self) -> None:
        """Let it end, with whatever still runs, and wait for that."""
        with self._lock:
            self._part()

    @property
    def pid(self) -> int | None:
        """Give its process id, ``None`` where it does not run."""
        return None if self._process is None else self._process.pid

    def _serves(self, process: subprocess.Popen[bytes]) -> bool:
        """Tell whether a server serves; one that is silent for too long is ended."""
        with self._lock:
            if process.poll() is not None:
                return False
            if process is not self._process or self._silence is None:
                return True
            if not self._silence.is_too_long():
                return True
            silent = SilentServerError(f"it said nothing for {self._silence.seconds:.0f} s")
            # It takes its runs with it, so that none goes on that nobody looks after.
            process.kill()
            self._part()
        signals.report("The process that forks runs", silent, then="another one takes its place")
        return False

    def _send(self, message: bytes, descriptors: list[int]) -> subprocess.Popen[bytes]:
        """Send to a server that lives; a new one takes the place of one that died."""
        try:
            control, process = self._living()
            socket.send_fds(control, [message], descriptors)
        except OSError:
            self._part()
            control, process = self._living()
            socket.send_fds(control, [message], descriptors)
        return process

    def _living(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        if self._process is not None and self._process.poll() is not None:
            self._part()
        if self._control is None or self._process is None:
            self._control, self._process = self._spawned()
            self._silence = Silence(self._control, self._process.pid, self._clock)
        return self._control, self._process

    def _spawned(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        if not forking.can_fork():
            raise ProcessesUnavailableError("this system cannot fork processes")
        if not os.environ.get(_SETTINGS):
            raise ProcessesUnavailableError(
                f"{_SETTINGS} is not set: a process would not find the project's settings"
            )
        mine, theirs = socket.socketpair()
        try:
            process = self._executed(theirs)
        except OSError as error:
            mine.close()
            raise ProcessesUnavailableError(f"no process could be started: {error}") from error
        finally:
            theirs.close()
        # A callback in a thread may close what it does not know.
        control = socket.socket(fileno=out_of_the_way(mine.detach()))
        # One that hangs and takes nothing holds nobody: it is replaced.
        control.settimeout(_LONGEST_SENDING)
        forking.close_in_children(control.fileno())
        return control, process

    def _executed(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        """Execute a server; until it has loaded the project its errors go to a file."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - read after the server's end
        errors = _standard_error()
        try:
            order = entry.Order.of(theirs.fileno(), errors, self._paths)
            return subprocess.Popen(
                entry.arguments(order),
                pass_fds=[theirs.fileno(), errors],
                stdin=subprocess.DEVNULL,
                stderr=self._errors,
                env=entry.environment(order),
                start_new_session=True,
            )
        finally:
            os.close(errors)

    def _hear_last_words(self) -> None:
        """Print why a server could not load the project, and keep the last line of it."""
        errors, self._errors = self._errors, None
        if errors is None:
            return
        with errors:
            errors.seek(0)
            said = errors.read().decode("utf-8", "backslashreplace").strip()
        self.last_words = said.splitlines()[-1] if said else ""
        if said:
            sys.stderr.write(said + "\n")

    def _part(self) -> None:
        control, self._control = self._control, None
        process, self._process = self._process, None
        self._silence = None
        if control is not None:
            control.close()
        if process is not None:
            try:
                process.wait(_LONGEST_FAREWELL)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._hear_last_words()


def _standard_error() -> int:
    """Return a second descriptor of the standard error, which a daemon may have closed."""
    with suppress(OSError):
        return os.dup(2)
    return os.open(os.devnull, os.O_WRONLY)
