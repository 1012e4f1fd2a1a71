"""Let a storm blow, judge what came of it, and say so.

``DDC_CHAOS_MINUTES``, ``DDC_CHAOS_SCHEDULERS``, ``DDC_CHAOS_TASKS``, ``DDC_CHAOS_LEASE``,
``DDC_CHAOS_GAP``, ``DDC_CHAOS_LONGEST`` and ``DDC_CHAOS_SEED`` say which, ``DDC_TEST_DATABASE``
where: ``postgres``, ``pgbouncer``, ``mariadb`` or ``sqlite``. ``DDC_CHAOS_WEATHER=clocks`` stops
processes for any time and sets their wall clock, and does little else. The exit code is 0 where
nothing is wrong. ``DDC_CHAOS_KEEP`` names a directory that gets the logs and the evidence.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

from . import clocks, place
from .plan import Plan


def main() -> int:
    # Nothing is to be left behind, whoever ends this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    kind = os.environ.get("DDC_TEST_DATABASE") or "postgres"
    with place.made(kind) as (database, directory):
        plan = replace(Plan.from_environment(), evidence=str(directory / "evidence.jsonl"))
        Path(plan.evidence).touch()
        os.environ.update(
            database.environment, DJANGO_SETTINGS_MODULE="tests.processes.chaos.settings"
        )
        os.environ.update(plan.environment())
        if plan.weather == "clocks":
            os.environ[clocks.VARIABLE] = str(directory / "clock")
        import django

        django.setup()
        from .course import run

        report = run(plan, database, directory)
        sys.stdout.write(report.text() + "\n")
        keep = os.environ.get("DDC_CHAOS_KEEP")
        if keep:
            shutil.copytree(
                directory, keep, dirs_exist_ok=True, ignore=shutil.ignore_patterns("server")
            )
        return 0 if report.is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
