"""A long history is judged in one pass, without being kept."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from random import Random

import pytest

from django_declarative_cron.theory import judge

from .notation import Mode, Record, at, both_modes

TASKS = 20


def history(runs: int) -> Iterator[Record]:
    """Give a history of tasks that run every minute, some of them failing."""
    random, instant = Random(4), at(10)
    registrations = [
        {
            "name": f"task-{number}",
            "cron": "* * * * *",
            "timezone": "Europe/Berlin",
            "retry_delay": timedelta(seconds=20),
        }
        for number in range(TASKS)
    ]
    for event in ("IS", "IEs"):
        yield {"at": instant, "event": event, "registrations": registrations}
    for run in range(runs):
        minute, number = divmod(run, TASKS)
        task, end = f"task-{number}", "REf" if random.random() < 0.1 else "REs"
        started = at(60 + 60 * minute) + timedelta(milliseconds=2 * number)
        yield {"at": started, "event": "RS", "task": task}
        yield {"at": started + timedelta(milliseconds=1), "event": end, "task": task}


@both_modes
def test_a_long_history_is_judged_to_its_end(mode: Mode) -> None:
    verdict = judge(history(2_000), mode, pulses="made")
    assert (verdict.violations, verdict.starts) == ((), 2_000)


def peak(runs: int, mode: Mode) -> int:
    tracemalloc.start()
    judge(islice(history(runs), 2 * runs), mode, pulses="made")
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return memory


@pytest.mark.slow
@both_modes
def test_memory_grows_with_the_tasks_and_not_with_the_runs(mode: Mode) -> None:
    peak(100, mode)
    # Five times the runs would take five times the memory; Pythons differ by a fifth.
    assert peak(1_000, mode) < 1.5 * peak(200, mode)
