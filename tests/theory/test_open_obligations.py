"""In the repaired reading exactly what is owed waits for its start, wherever a trace ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from django_declarative_cron.theory.axioms.liveness import L1ObligationFulfillment
from django_declarative_cron.theory.operational import OperationalState
from django_declarative_cron.theory.operators import FrozenTime
from django_declarative_cron.theory.trace import positions

from .random_traces import NAMES, Writer, records

FEW, MANY = range(60), range(60, 1000)


def waiting_and_owed(seed: int) -> Iterator[tuple[set[str | None], set[str | None]]]:
    """Give, for each position, what waits for a start and what is owed one."""
    state, l1 = OperationalState(), L1ObligationFulfillment(None, FrozenTime())
    for position in positions(records(Writer(seed).write(length=25)), pulses="stated"):
        state.step(position)
        l1.judge(position, state)
        started = {event.task for event in position.each("RS")}
        waiting = {finding.task for finding in l1.watch.open()}
        yield waiting - started, {name for name in NAMES if state.obliged(name)} - started


def _compare(seeds: range) -> None:
    for seed in seeds:
        for number, (waiting, owed) in enumerate(waiting_and_owed(seed)):
            assert waiting == owed, f"seed {seed}, position {number}"


@pytest.mark.requirement("004 Stateful/2")
def test_what_waits_for_a_start_is_what_is_owed_one() -> None:
    _compare(FEW)


@pytest.mark.slow
def test_what_waits_for_a_start_is_what_is_owed_one_on_many_traces() -> None:
    _compare(MANY)


def test_the_traces_have_something_owed() -> None:
    assert sum(bool(owed) for seed in range(50) for _, owed in waiting_and_owed(seed)) > 100
