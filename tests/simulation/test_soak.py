"""New seeds for as long as somebody wants: ``DDC_SOAK_MINUTES=60 tox -e soak``."""

from __future__ import annotations

import itertools
import os
import random
import time
from datetime import timedelta

import pytest

from .proving import prove
from .steps import PROFILES

MINUTES = "DDC_SOAK_MINUTES"
FIRST = "DDC_SOAK_FIRST"


@pytest.mark.skipif(MINUTES not in os.environ, reason=f"{MINUTES} says for how long")
def test_soak(stage: None, capsys: pytest.CaptureFixture[str]) -> None:
    first = int(os.environ.get(FIRST) or random.randrange(10**6, 10**9))
    deadline = time.monotonic() + 60 * float(os.environ[MINUTES])
    starts, passed, told_at = 0, timedelta(0), time.monotonic()
    for number, seed in enumerate(itertools.count(first), start=1):
        for profile in PROFILES:
            played = prove(profile, seed)
            starts, passed = starts + played.starts, passed + played.passed
        over = time.monotonic() > deadline
        if over or time.monotonic() > told_at + 60:
            told_at = time.monotonic()
            what = f"seeds {first} to {seed} of each profile"
            _tell(capsys, what, len(PROFILES) * number, starts, passed)
        if over:
            return


def _tell(
    capsys: pytest.CaptureFixture[str], what: str, stories: int, starts: int, passed: timedelta
) -> None:
    hours = passed.total_seconds() / 3600
    with capsys.disabled():
        text = f"{what}: {stories:,} stories, {hours:,.0f} simulated hours, {starts:,} starts"
        os.write(1, f"\n{text}\n".encode())
