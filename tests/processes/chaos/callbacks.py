"""What the tasks do: take some time, go well or not, and write down that they did."""

from __future__ import annotations

import json
import os
import random
import time
from uuid import uuid4

from django.db import connection

from django_declarative_cron.runtime.work import Run

from .plan import Plan

_plan = Plan.from_environment()
_file = os.open(_plan.evidence, os.O_WRONLY | os.O_APPEND | os.O_CREAT) if _plan.evidence else -1


def _note(**said: object) -> None:
    """Append one line; so short a write is whole, whoever else appends."""
    line = json.dumps({**said, "pid": os.getpid(), "at": time.monotonic()})
    os.write(_file, line.encode() + b"\n")


def work(run: Run) -> None:
    """Run as chance has it for this attempt."""
    key = f"{_plan.seed} {run.task_name} {run.started_at.isoformat()}"
    chance = random.Random(key)
    token, occurrence = str(uuid4()), run.scheduled_for.isoformat()
    _note(
        event="start",
        run=token,
        task=run.task_name,
        occurrence=occurrence,
        reason=run.reason,
        started=run.started_at.isoformat(),
    )
    succeeded = False
    try:
        _take_time(run, chance)
        if chance.random() < 0.25:
            raise RuntimeError("as chance has it")
        succeeded = True
    finally:
        _note(event="end", run=token, succeeded=succeeded)


def _take_time(run: Run, chance: random.Random) -> None:
    kind = chance.random()
    if kind < 0.6:
        seconds = chance.uniform(0, 0.3)
    elif kind < 0.97:
        seconds = chance.uniform(0.3, 6)
    else:
        seconds = chance.uniform(_plan.longest / 4, _plan.longest)
    if chance.random() < 0.2:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    if chance.random() < 0.9:
        run.stopping.wait(seconds)
    else:
        time.sleep(seconds)
