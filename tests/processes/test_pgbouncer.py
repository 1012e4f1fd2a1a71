"""Two schedulers behind PgBouncer, which gives each transaction another server connection."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from django_declarative_cron.models import TaskRun
from tests.database import for_children
from tests.process import TIMEOUT, Process
from tests.timeouts import wait_until

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="it is about PostgreSQL"),
    pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed"),
]

CONFIGURATION = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
unix_socket_dir = {directory}
listen_port = 6432
auth_type = any
pool_mode = transaction
default_pool_size = 3
logfile = {directory}/log
"""


@pytest.fixture
def pooled(transactional_db: None, project_environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """Give the environment of a child process whose database is behind a pooler."""
    assert PGBOUNCER is not None
    directory = Path(tempfile.mkdtemp(prefix="ddc-pgbouncer-"))
    owner = "nobody" if os.geteuid() == 0 else None
    directory.chmod(0o755)
    if owner:
        shutil.chown(directory, owner)
    settings = connection.settings_dict
    values = {"host": settings["HOST"], "port": settings["PORT"], "user": settings["USER"]}
    file = directory / "pgbouncer.ini"
    file.write_text(CONFIGURATION.format(**values, directory=directory))
    pooler = subprocess.Popen(
        [PGBOUNCER, "--quiet", str(file)],
        user=owner,
        extra_groups=[] if owner else None,
        stdin=subprocess.DEVNULL,
    )
    try:
        wait_until((directory / ".s.PGSQL.6432").exists, "the pooler")
        behind = for_children({**settings, "HOST": str(directory), "PORT": "6432"})
        yield {
            **project_environment,
            **behind,
            "DJANGO_SETTINGS_MODULE": "tests.processes.chaos.secondly",
        }
        log = (directory / "log").read_text()
        assert "unsupported startup parameter" not in log
    finally:
        pooler.terminate()
        pooler.wait(TIMEOUT)
        shutil.rmtree(directory)


@pytest.fixture
def schedulers(pooled: dict[str, str]) -> Iterator[list[Process]]:
    """Give two that begin at once."""
    begun = [Process(pooled) for _ in range(2)]
    yield begun
    for each in begun:
        each.kill()


def test_schedulers_work_behind_a_pooler_of_transactions(schedulers: list[Process]) -> None:
    for each in schedulers:
        each.wait_for("Ctrl-C stops it")
    wait_until(lambda: TaskRun.objects.filter(outcome="failed").count() >= 40, "forty runs")
    for each in schedulers:
        each.child.terminate()
    assert [each.exit_code() for each in schedulers] == [0, 0]
    for each in schedulers:
        refused = [line for line in each.lines if "PersistenceFailed" in line]
        # A machine that has much else to do may let a row be waited for too long.
        assert [line for line in refused if "timeout" not in line] == []
    ran = TaskRun.objects.filter(outcome="failed").values_list(
        "task_name", "scheduled_for", "attempt"
    )
    assert len(set(ran)) == len(ran)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert cursor.fetchone()[0] == 0
        cursor.execute("SELECT count(*) FROM pg_prepared_statements")
        assert cursor.fetchone()[0] == 0
