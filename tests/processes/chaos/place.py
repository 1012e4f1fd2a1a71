"""The database of a storm, with a server of its own that can be restarted."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from tests.database import mariadb, postgres


class Sqlite:
    """A file."""

    def __init__(self, directory: Path) -> None:
        path = quote(str(directory / "chaos.sqlite3"))
        self.environment = {"DDC_TEST_DATABASE": "sqlite", "DATABASE_URL": f"sqlite:///{path}"}
        self.can_fail = False

    def terminate(self, share: float) -> int:
        return 0

    def restart(self, *, at_once: bool) -> float:
        return 0.0


class Postgres:
    """A server out of the wheel."""

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
        """Restart the server as after a crash, or in order; give the seconds it was away."""
        began = time.monotonic()
        mode = "immediate" if at_once else "fast"
        log = str(self._directory / "log")
        self._server._run("pg_ctl", "-l", log, "-m", mode, "-t", "60", "-w", "restart")
        return time.monotonic() - began

    def stop(self) -> None:
        self._server.stop()


PGBOUNCER = shutil.which("pgbouncer", path=mariadb.FOLDERS)
_POOLER = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
pool_mode = transaction
listen_addr =
unix_socket_dir = {directory}
listen_port = 6432
auth_type = any
max_client_conn = 500
default_pool_size = {size}
server_tls_sslmode = disable
logfile = {directory}/pgbouncer.log
"""


def start_pooler(directory: Path, owner: str | None, **values: object) -> subprocess.Popen[bytes]:
    """Start PgBouncer, which gives every transaction another connection, in a directory."""
    if PGBOUNCER is None:
        raise RuntimeError("No PgBouncer: install pgbouncer.")
    configuration = directory / "pgbouncer.ini"
    configuration.write_text(_POOLER.format(directory=directory, **values))
    pooler = subprocess.Popen(
        [PGBOUNCER, "--quiet", str(configuration)],
        user=owner,
        extra_groups=[] if owner else None,
    )
    while not (directory / ".s.PGSQL.6432").exists():
        time.sleep(0.05)
    return pooler


class Pooled(Postgres):
    """The same behind PgBouncer."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        values = {"host": directory, "port": 5432, "user": "postgres", "size": 20}
        self._pooler = start_pooler(directory, self._server.user, **values)
        self.environment["DATABASE_URL"] = self.url.replace("port=5432", "port=6432")

    def stop(self) -> None:
        self._pooler.kill()
        self._pooler.wait()
        super().stop()


class Mariadb:
    """A server that the machine has installed."""

    def __init__(self, directory: Path) -> None:
        import MySQLdb  # noqa: F401 - before there is a server that somebody has to stop

        self._server = mariadb.Server(directory, forgets=False)
        self.url = self._server.start()
        self.environment = {"DDC_TEST_DATABASE": "mariadb", "DATABASE_URL": self.url}
        self.can_fail = True
        with self._connection() as cursor:
            cursor.execute("CREATE DATABASE ddc CHARACTER SET utf8mb4")

    @contextmanager
    def _connection(self):  # type: ignore[no-untyped-def]
        import MySQLdb

        where = str(self._server.socket)
        with closing(MySQLdb.connect(unix_socket=where, user="root")) as connection:
            yield connection.cursor()

    def terminate(self, share: float) -> int:
        """End a share of the connections, wherever they are in what they do."""
        import MySQLdb

        ended = 0
        with self._connection() as cursor:
            cursor.execute(
                "SELECT id FROM information_schema.processlist WHERE db = 'ddc' AND rand() < %s",
                [share],
            )
            for (connection,) in cursor.fetchall():
                with suppress(MySQLdb.Error):
                    cursor.execute("KILL %s", [connection])
                    ended += 1
        return ended

    def restart(self, *, at_once: bool) -> float:
        """Restart the server as after a crash, or in order; give the seconds it was away."""
        began = time.monotonic()
        if at_once:
            self._server.stop()
        else:
            self._server.shut_down()
        self._server.launch()
        return time.monotonic() - began

    def stop(self) -> None:
        self._server.stop()


SERVERS = {"postgres": Postgres, "pgbouncer": Pooled, "mariadb": Mariadb}
Place = Sqlite | Postgres | Mariadb


@contextmanager
def made(kind: str) -> Iterator[tuple[Place, Path]]:
    """Make a database and a directory for everything else; both are gone afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="ddc-chaos-"))
    server = None
    try:
        if kind == "sqlite":
            yield Sqlite(directory), directory
            return
        data = directory / "server"
        data.mkdir()
        directory.chmod(0o755)
        server = SERVERS[kind](data)
        yield server, directory
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(directory, ignore_errors=True)
