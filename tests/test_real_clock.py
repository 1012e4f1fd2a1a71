"""The guard of the real clock, and the modules of tests that read it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import time_machine
from freezegun import freeze_time

from django_declarative_cron.runtime.clock import system_clock

from .conftest import REAL_CLOCK
from .real_clock import NOON, REFUSED, readings

HERE = Path(__file__).parent
FROZEN = {"admin"}


def test_reading_the_real_clock_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match="reads the real clock") as caught:
        system_clock.now()
    assert caught.value.msg == REFUSED


def test_reading_a_clock_that_stands_still_does_not(still_clock: None) -> None:
    assert system_clock.now() == NOON


@pytest.mark.real_clock
def test_reading_it_with_the_mark_does_not() -> None:
    assert system_clock.now() > datetime(2026, 1, 1, tzinfo=UTC)


def test_reading_a_clock_that_is_controlled_does_not() -> None:
    with freeze_time(NOON):
        assert system_clock.now() == NOON
    with time_machine.travel(NOON, tick=False):
        assert system_clock.now() == NOON


def test_modules_that_read_the_real_clock_say_so() -> None:
    found: list[str] = []
    for path in sorted(HERE.rglob("*.py")):
        folder = path.relative_to(HERE).parts[0]
        if folder in REAL_CLOCK | FROZEN or "real_clock" in path.read_text(encoding="utf-8"):
            continue
        found += readings(path)
    assert found == []
