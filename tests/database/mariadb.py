"""A MariaDB server for one test session, where the machine has MariaDB installed.

The server belongs to a supervisor, which is this file run as a script; how that ends
is said in ``postgres.py`` beside it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

FOLDERS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
SERVER = shutil.which("mariadbd", path=FOLDERS)
INSTALL = shutil.which("mariadb-install-db", path=FOLDERS)
ADMIN = shutil.which("mariadb-admin", path=FOLDERS)
OPTIONS = (
    "--skip-networking",
    "--skip-log-bin",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=256M",
)


def is_installed() -> bool:
    """Tell whether ``start`` finds what it needs."""
    return None not in (SERVER, INSTALL, ADMIN)


def start() -> str:
    """Start a server that lives as long as this process, and return its URL."""
    if not is_installed():
        raise RuntimeError("No MariaDB: install mariadb-server, or name a server in DATABASE_URL.")
    supervisor = subprocess.Popen(
        [sys.executable, "-S", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert supervisor.stdin and supervisor.stdout
    atexit.register(supervisor.communicate)
    url = supervisor.stdout.readline().strip()
    if not url:
        raise RuntimeError("MariaDB did not start; the reason stands above.")
    return url


class Server:
    """A data directory of its own and a server that listens on a socket beside it."""

    def __init__(self, directory: Path, *, forgets: bool = True) -> None:
        self.directory = directory
        # What is confirmed is written down a second later: faster, and lost in a crash.
        self._options = OPTIONS if forgets else OPTIONS[:2]
        self.socket = directory / "socket"
        self.user = "nobody" if os.geteuid() == 0 else None
        directory.chmod(0o755)
        if self.user:
            shutil.chown(directory, self.user)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Make the data directory, start the server and return its URL."""
        assert SERVER and INSTALL and ADMIN
        owner = [f"--user={self.user}"] if self.user else []
        data = f"--datadir={self.directory / 'data'}"
        made = [INSTALL, "--no-defaults", data, "--auth-root-authentication-method=normal", *owner]
        self._run([*made, "--skip-test-db"])
        self.launch()
        return f"mysql://root@/ddc?socket={quote(str(self.socket), safe='')}"

    def launch(self) -> None:
        """Start the server on the data that is there, and wait until it answers."""
        assert SERVER and ADMIN
        owner = [f"--user={self.user}"] if self.user else []
        data = f"--datadir={self.directory / 'data'}"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [SERVER, "--no-defaults", data, f"--socket={self.socket}", *owner, *self._options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait = [ADMIN, "--no-defaults", "-uroot", f"--socket={self.socket}", "--wait=30"]
        self._run([*wait, "--connect-timeout=30", "ping"])

    def shut_down(self) -> None:
        """Stop the server in order, and wait for the end."""
        assert ADMIN and self._process
        self._run([ADMIN, "--no-defaults", "-uroot", f"--socket={self.socket}", "shutdown"])
        self._process.wait()

    def stop(self) -> None:
        """Stop the server at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def _log(self) -> Path:
        return self.directory / "log"

    def _run(self, command: list[str]) -> None:
        with self._log.open("ab") as log:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if done.returncode:
            raise SystemExit(f"{command[0]} failed: {self._log.read_text()}")


def supervise() -> None:
    """Run a server until standard input closes, then leave nothing of it."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit())
    directory = Path(tempfile.mkdtemp(prefix="ddc-mariadb-"))
    server = Server(directory)
    try:
        print(server.start(), flush=True)  # noqa: T201
        sys.stdin.read()
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    supervise()
