"""Projects whose database is behind PgBouncer, or that read from a replica."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from django_declarative_cron.models import TaskRun
from tests.database import for_children
from tests.process import TIMEOUT, Process, run_python
from tests.timeouts import wait_until

from .chaos.place import PGBOUNCER, start_pooler

pytestmark = pytest.mark.slow


@pytest.fixture
def pooled(transactional_db: None, project_environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """Give the environment of a child process whose database is behind a pooler."""
    directory = Path(tempfile.mkdtemp(prefix="ddc-pgbouncer-"))
    owner = "nobody" if os.geteuid() == 0 else None
    directory.chmod(0o755)
    if owner:
        shutil.chown(directory, owner)
    settings = connection.settings_dict
    values = {name: settings[name.upper()] for name in ("host", "port", "user")}
    pooler = start_pooler(directory, owner, **values, size=3)
    try:
        yield {
            **project_environment,
            **for_children({**settings, "HOST": str(directory), "PORT": "6432"}),
            "DJANGO_SETTINGS_MODULE": "tests.processes.chaos.secondly",
        }
        assert "unsupported startup parameter" not in (directory / "pgbouncer.log").read_text()
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


@pytest.mark.skipif(connection.vendor != "postgresql", reason="it is about PostgreSQL")
@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
def test_schedulers_work_behind_a_pooler_of_transactions(schedulers: list[Process]) -> None:
    for each in schedulers:
        each.up()
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


@pytest.mark.own_database
def test_p74_what_decides_is_asked_where_it_is_written_and_not_of_a_replica(
    project_environment: dict[str, str], tmp_path: Path
) -> None:
    settings = {
        "DJANGO_SETTINGS_MODULE": "tests.processes.replica_settings",
        "DDC_TEST_FILE": str(tmp_path / "jobs.sqlite3"),
    }
    environment = {**project_environment, **settings}
    done = run_python("-m", "tests.processes.replica_work", env=environment, timeout=5 * TIMEOUT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "the replica decides": 0,
        "runs": 11,
        "pages": [200, 200, 200, 200],
        "act": 302,
        "paused by": "ada",
        "listed": True,
    }
