"""The fork server of a process runner: started, asked for processes, replaced when it hangs."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import IO

from django.utils.autoreload import get_child_arguments

from ... import signals
from .. import forking
from ..clock import Clock, system_clock
from ..forking import out_of_the_way
from .process_protocol import ASK, FORK, MESSAGE, SIGNAL, close_quietly

EVERY = 1.0
"""Seconds between two questions, and the most that counts between two checks."""

WAKE_AFTER = 5.0
"""Seconds without an answer after which the server gets SIGCONT: it may be stopped."""

LONGEST_SILENCE = 15.0
"""Seconds without an answer after which a server that has answered before is killed."""

LONGEST_LOAD = 60.0
"""Seconds within which a new server must load the project and answer."""


class Silence:
    """Ask one server whether it serves, and measure the time without an answer.

    A callback may stop or hang the server. Each run in progress checks the server now and then;
    time without checks does not count, so a machine that slept or is overloaded causes no
    false alarm.

    Args:
        control: the conversation with the server.
        pid: of the server.
        clock: measures.
    """

    def __init__(self, control: socket.socket, pid: int, clock: Clock) -> None:
        self._control = control
        self._pid = pid
        self._clock = clock
        self._looked = self._asked = clock.monotonic()
        self._owed = self._has_answered = self._was_woken = False
        self.seconds = 0.0

    def is_too_long(self) -> bool:
        """Check the server, and return whether it is to be replaced."""
        now = self._clock.monotonic()
        passed, self._looked = now - self._looked, now
        if self._hears():
            self._owed, self._has_answered, self._was_woken, self.seconds = False, True, False, 0.0
        if self._owed:
            self.seconds += min(passed, EVERY)
        elif now - self._asked >= EVERY or not self._has_answered:
            self._ask(now)
        if self.seconds >= WAKE_AFTER and not self._was_woken:
            self._was_woken = True
            with suppress(OSError):
                os.kill(self._pid, signal.SIGCONT)
        return self.seconds >= (LONGEST_SILENCE if self._has_answered else LONGEST_LOAD)

    def _hears(self) -> bool:
        try:
            return self._may(select.POLLIN) and bool(self._control.recv(MESSAGE.size))
        except OSError:
            return False

    def _ask(self, now: float) -> None:
        self._asked, self._owed = now, True
        with suppress(OSError):
            if self._may(select.POLLOUT):
                self._control.sendall(MESSAGE.pack(ASK, 0, 0))

    def _may(self, event: int) -> bool:
        """Return whether reading or writing would not block."""
        poll = select.poll()
        poll.register(self._control.fileno(), event)
        return bool(poll.poll(0))


OPTION = "--fork-server"

_COMMAND = "runscheduler"

_is_command = False


@dataclass(frozen=True, slots=True)
class Order:
    """The argument of a fork server.

    Args:
        control: descriptor of its conversation with the scheduler.
        errors: descriptor of the standard error after loading.
        paths: callbacks that it imports.
        path: the scheduler's ``sys.path``.
        python_path: the scheduler's ``PYTHONPATH``, ``None`` where it has none.
    """

    control: int
    errors: int
    paths: list[str]
    path: list[str]
    python_path: str | None

    @classmethod
    def of(cls, control: int, errors: int, paths: Iterable[str]) -> Order:
        return cls(control, errors, sorted(paths), sys.path, os.environ.get("PYTHONPATH"))

    @classmethod
    def read(cls, text: str) -> Order:
        return cls(**json.loads(text))

    def __str__(self) -> str:
        return json.dumps(asdict(self))


def is_command() -> None:
    """Note that this process was started as a management command on the command line."""
    global _is_command
    _is_command = True


def arguments(order: Order) -> list[str]:
    """Return the command line of a fork server."""
    if _is_command:
        try:
            ours = [str(each) for each in get_child_arguments()]
        except RuntimeError:
            pass  # This process was not started from a file, as with `python -c`.
        else:
            return [*ours[: len(ours) - len(sys.argv[1:])], _COMMAND, OPTION, str(order)]
    return [sys.executable, "-c", _BOOTSTRAP, str(order)]


def environment(order: Order) -> Mapping[str, str]:
    """Return the environment of a fork server, which finds the same modules as this process."""
    if not _is_command:
        return os.environ
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, order.path))}


_BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])['path'];"
    " import django; django.setup();"
    f" from {__package__}.fork_server import main;"
    " main(sys.argv[1])"
)


_LONGEST_FAREWELL = 2.0
_LONGEST_SENDING = 5.0
_SETTINGS = "DJANGO_SETTINGS_MODULE"


class ProcessesUnavailableError(RuntimeError):
    """Report why a run cannot be called in a process of its own."""


class SilentServerError(RuntimeError):
    """Report that a fork server was replaced because it did not answer."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The scheduler's end of the process of a run.

    Args:
        talk: messages in both directions.
        output: descriptor of its output.
        is_served: returns whether its server serves.
    """

    talk: socket.socket
    output: int
    is_served: Callable[[], bool]

    def close(self) -> None:
        self.talk.close()
        close_quietly(self.output)


class Server:
    """A fork server, from the first run that needs it to the last.

    Args:
        clock: measures the time without a message from it.
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
        """Start to load Django; a server that runs already stays as it is.

        Raises:
            ProcessesUnavailableError: this process cannot start a server.
        """
        with self._lock:
            self._paths.update(paths)
            self._living()

    def call(self, key: int) -> Conversation:
        """Begin the process of a run.

        Raises:
            ProcessesUnavailableError: this process cannot start a server.
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
        """Send a signal to the group of a run."""
        with self._lock, suppress(OSError):
            if self._control is not None:
                self._control.sendall(MESSAGE.pack(SIGNAL, key, number))

    def close(self) -> None:
        """End it with all its runs, and wait for the end."""
        with self._lock:
            self._part()

    @property
    def pid(self) -> int | None:
        """Return its process id, ``None`` where it does not run."""
        return None if self._process is None else self._process.pid

    def _serves(self, process: subprocess.Popen[bytes]) -> bool:
        """Return whether a server serves; kill one that is silent for too long."""
        with self._lock:
            if process.poll() is not None:
                return False
            if process is not self._process or self._silence is None:
                return True
            if not self._silence.is_too_long():
                return True
            silent = SilentServerError(f"it said nothing for {self._silence.seconds:.0f} s")
            # Its runs end with it, so that none goes on without supervision.
            process.kill()
            self._part()
        signals.report("The process that forks runs", silent, then="another one takes its place")
        return False

    def _send(self, message: bytes, descriptors: list[int]) -> subprocess.Popen[bytes]:
        """Send to a living server; start another one in the place of a dead one."""
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
        # A callback in a thread may close descriptors that it does not know.
        control = socket.socket(fileno=out_of_the_way(mine.detach()))
        # A server that hangs and reads nothing is replaced.
        control.settimeout(_LONGEST_SENDING)
        forking.close_in_children(control.fileno())
        return control, process

    def _executed(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        """Execute a server; until it has loaded the project its errors go to a file."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - read after the server's end
        errors = _standard_error()
        try:
            order = Order.of(theirs.fileno(), errors, self._paths)
            return subprocess.Popen(
                arguments(order),
                pass_fds=[theirs.fileno(), errors],
                stdin=subprocess.DEVNULL,
                stderr=self._errors,
                env=environment(order),
                start_new_session=True,
            )
        finally:
            os.close(errors)

    def _hear_last_words(self) -> None:
        """Print the error of a server that could not load the project; keep its last line."""
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
