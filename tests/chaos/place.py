"""The database of a storm, with a server of its own that can be restarted."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from tests import postgres


class Sqlite:
    """A file."""

    def __init__(self, directory: Path) -> None:
        path = quote(str(directory / "chaos.sqlite3"))
        self.environment = {"DDC_TEST_DATABASE": "sqlite", "DATABASE_URL": f"sqlite:///{path}"}
        self.can_fail = False

    def terminate(self, share: float) -> int:
        """There is nothing to terminate."""
        return 0

    def restart(self, *, at_once: bool) -> float:
        """There is nothing to restart."""
        return 0.0


class Postgres:
    """A server out of the wheel.

    Args:
        directory: of its data.
    """

    def __init__(self, directory: Path) -> None:
        self._server = postgres.Server(postgres._wheel(), directory)
        self.url = self._server.start()
        self.environment = {"DDC_TEST_DATABASE": "postgres", "DATABASE_URL": self.url}
        self.can_fail = True
        self._directory = directory
        with self._connection("postgres") as cursor:
            cursor.execute("CREATE DATABASE ddc")
            # The tests' server forgets what it has confirmed when it crashes; this one crashes.
            cursor.execute("ALTER SYSTEM SET synchronous_commit = on")
            cursor.execute("SELECT pg_reload_conf()")

    @contextmanager
    def _connection(self, name: str):  # type: ignore[no-untyped-def]
        import psycopg

        where = f"host={self._directory} port=5432 user=postgres dbname={name}"
        with closing(psycopg.connect(where, autocommit=True)) as connection:
            yield connection.cursor()

    def terminate(self, share: float) -> int:
        """End a share of the connections, wherever they are in what they do."""
        with self._connection("postgres") as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = 'ddc' AND random() < %s",
                [share],
            )
            return int(cursor.fetchone()[0])

    def restart(self, *, at_once: bool) -> float:
        """Restart the server; give the seconds in which it was away.

        Args:
            at_once: as after a crash, instead of in order.
        """
        began = time.monotonic()
        mode = "immediate" if at_once else "fast"
        log = str(self._directory / "log")
        self._server._run("pg_ctl", "-l", log, "-m", mode, "-t", "60", "-w", "restart")
        return time.monotonic() - began

    def stop(self) -> None:
        """Stop the server."""
        self._server.stop()


@contextmanager
def made(kind: str) -> Iterator[tuple[Postgres | Sqlite, Path]]:
    """Make a database and a directory for everything else; both are gone afterwards.

    Args:
        kind: ``postgres`` or ``sqlite``.
    """
    directory = Path(tempfile.mkdtemp(prefix="ddc-chaos-"))
    server = None
    try:
        if kind == "sqlite":
            yield Sqlite(directory), directory
            return
        data = directory / "server"
        data.mkdir()
        directory.chmod(0o755)
        server = Postgres(data)
        yield server, directory
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(directory, ignore_errors=True)
