"""How long ``cron verify`` takes, as a ratio to reading the same rows and nothing else.

``DDC_TEST_DATABASE=postgres python -m benchmarks.verify --runs 100000`` makes a database of
its own, fills it, judges it in turns with plain reading, and removes it.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from io import StringIO
from statistics import median

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

from django.core.management import call_command
from django.db import connection
from django.test.utils import setup_databases, teardown_databases

from django_declarative_cron.models import TaskRun
from tests.management.filled import fill

TASKS = 100


def _verify() -> None:
    output = StringIO()
    call_command("cron", "verify", stdout=output)
    assert output.getvalue().startswith("0 violations in "), output.getvalue()


def _read() -> None:
    assert sum(1 for _ in TaskRun.objects.order_by("id").values_list().iterator()) > 0


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000, help="how many runs are judged")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    chosen = parser.parse_args()
    old = setup_databases(verbosity=0, interactive=False)
    try:
        fill(TASKS, chosen.runs // TASKS)
        runs = TaskRun.objects.count()
        rounds = [(_seconds(_verify), _seconds(_read)) for _ in range(chosen.rounds)]
    finally:
        teardown_databases(old, verbosity=0)
    judged, read = (median(column) for column in zip(*rounds, strict=True))
    print(f"{connection.vendor}, {runs:,} runs, median of {chosen.rounds} rounds")
    print(f"  cron verify         {judged:8.2f} s   {runs / judged:10,.0f} runs/s")
    print(f"  reading the rows    {read:8.2f} s   ratio {judged / read:.1f}")


if __name__ == "__main__":
    main()
