"""Restart a PostgreSQL server again and again, and tell how soon schedulers go on.

``python -m tests.processes.chaos.restarts [TIMES] [SCHEDULERS]``. The seconds are those from when
the server takes connections again to the start of the next run. Afterwards every minute is
accounted for: it ran, no attempt twice, or it stands as missed. The exit code is 0 where
that is so.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.process import Process

from ...timeouts import TIMEOUT
from . import place

_BETWEEN = 2.5
_STARTED = "SELECT count(*) FROM django_declarative_cron_taskrun WHERE started_at > %s"
_DOUBLED = (
    "SELECT count(*) FROM (SELECT 1 FROM django_declarative_cron_taskrun WHERE outcome <> 'missed'"
    " GROUP BY task_name, scheduled_for, attempt HAVING count(*) > 1) AS twice"
)
_UNACCOUNTED = (
    "SELECT coalesce(sum(span - told), 0) FROM (SELECT"
    " extract(epoch FROM max(scheduled_for) - min(scheduled_for)) / 60 + 1 AS span,"
    " coalesce(sum(count) FILTER (WHERE outcome = 'missed'), 0)"
    " + count(DISTINCT scheduled_for) FILTER (WHERE outcome <> 'missed') AS told"
    " FROM django_declarative_cron_taskrun GROUP BY task_name) AS tasks"
)
_OPEN = "SELECT count(*) FROM django_declarative_cron_taskrun WHERE running_slot IS NOT NULL"


def main(times: int, schedulers: int) -> int:
    with place.made("postgres") as (server, directory):
        assert isinstance(server, place.Postgres)
        evidence = directory / "evidence.jsonl"
        Path(evidence).touch()
        os.environ.update(
            server.environment, DJANGO_SETTINGS_MODULE="tests.processes.chaos.secondly"
        )
        os.environ.update(DDC_CHAOS_EVIDENCE=str(evidence))
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        ships = [Process(dict(os.environ)) for _ in range(schedulers)]
        for ship in ships:
            ship.wait_for("Ctrl-C stops it")
        seconds = [_restart(server, at_once=bool(number % 2)) for number in range(times)]
        for ship in ships:
            ship.child.terminate()
        codes = [ship.exit_code() for ship in ships]
        doubled, unaccounted = int(_ask(_DOUBLED)), int(_ask(_UNACCOUNTED) + _ask(_OPEN))
        runs = _ask(_STARTED, datetime.min)
    _say(
        f"{times} restarts, {schedulers} schedulers, {runs} runs:"
        f" median {statistics.median(seconds):.2f} s, worst {max(seconds):.2f} s;"
        f" {doubled} doubled, {unaccounted} unaccounted, exit codes {codes}"
    )
    return 0 if not doubled and not unaccounted and not any(codes) else 1


def _restart(server: place.Postgres, *, at_once: bool) -> float:
    """Restart, and wait for the next start of a run; give the seconds between."""
    time.sleep(_BETWEEN)
    away = server.restart(at_once=at_once)
    up, since = time.monotonic(), _ask("SELECT clock_timestamp()")
    while not _ask(_STARTED, since):
        if time.monotonic() - up > TIMEOUT:
            raise SystemExit(f"Nothing has started for {TIMEOUT:g} s.")
        time.sleep(0.02)
    took = time.monotonic() - up
    _say(f"{'immediate' if at_once else 'fast'}: away {away:.2f} s, first start {took:.2f} s later")
    return took


def _ask(sql: str, *parameters: Any) -> Any:
    from django.db import connection

    connection.close()
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchone()[0]


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*(int(text) for text in (sys.argv[1:] + ["20", "2"][len(sys.argv) - 1 :]))))
