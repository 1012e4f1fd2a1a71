"""The fork server of a process runner: started, asked for processes, replaced when it hangs.

It is not the one of ``multiprocessing``, which preloads without the parent's ``sys.path`` up to
Python 3.13, imports the main module anew in each process, has one server for the project's own
pools and for runs, and lets a start wait without limit for a server that hangs.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import IO

from django.utils.autoreload import get_child_arguments

from ... import signals
from .. import forking
from ..forking import out_of_the_way
from .process_protocol import FORK, close_quietly

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


class HangingServerError(RuntimeError):
    """Report that a fork server was replaced because it did not begin a run."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The scheduler's end of the process of a run.

    Args:
        talk: messages in both directions.
        output: descriptor of its output.
        server: the process that forks it.
    """

    talk: socket.socket
    output: int
    server: subprocess.Popen[bytes]

    def close(self) -> None:
        self.talk.close()
        close_quietly(self.output)


class Server:
    """A fork server, from the first run that needs it to the last."""

    def __init__(self) -> None:
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

    def call(self) -> Conversation:
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
        try:
            with self._lock:
                process = self._fork([theirs.fileno(), write])
        except BaseException:
            mine.close()
            close_quietly(read)
            raise
        finally:
            theirs.close()
            close_quietly(write)
        os.set_blocking(read, False)
        forking.close_in_children(mine.fileno(), read)
        return Conversation(mine, read, process)

    def close(self) -> None:
        """End it with all its runs, and wait for the end."""
        with self._lock:
            self._part()

    @property
    def pid(self) -> int | None:
        """Return its process id, ``None`` where it does not run."""
        return None if self._process is None else self._process.pid

    def replace(self, hanging: subprocess.Popen[bytes]) -> None:
        """Kill a server that began no run in time; its runs end with it."""
        with self._lock:
            if hanging is not self._process:
                return
            hanging.kill()
            self._part()
        error = HangingServerError("it did not begin a run in time")
        signals.report("The process that forks runs", error, then="another one takes its place")

    def _fork(self, descriptors: list[int]) -> subprocess.Popen[bytes]:
        """Ask a living server; start another one in the place of a dead one."""
        try:
            control, process = self._living()
            socket.send_fds(control, [FORK], descriptors)
        except OSError:
            self._part()
            control, process = self._living()
            socket.send_fds(control, [FORK], descriptors)
        return process

    def _living(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        if self._process is not None and self._process.poll() is not None:
            self._part()
        if self._control is None or self._process is None:
            self._control, self._process = self._spawned()
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
            order = Order(
                theirs.fileno(),
                errors,
                sorted(self._paths),
                sys.path,
                os.environ.get("PYTHONPATH"),
            )
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
