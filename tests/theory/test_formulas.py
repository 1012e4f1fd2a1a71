"""On random traces: the literal judge says what the formulas say, the repaired what is owed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from django_declarative_cron.theory import judge
from django_declarative_cron.theory.axioms.liveness import L1ObligationFulfillment
from django_declarative_cron.theory.operational import OperationalState
from django_declarative_cron.theory.operators import FrozenTime
from django_declarative_cron.theory.trace import positions

from ..effort import IS_COMPLETE
from .formulas import Theory, Trace
from .random_traces import NAMES, Writer, records

COMPARED = {"S1", "S2", "S3", "S4", "EA6"}
MANY = range(40, 5_000 if IS_COMPLETE else 1_000)


def disagreement(trace: Trace) -> str | None:
    theory, verdict = Theory(trace), judge(records(trace), mode="letter", pulses="stated")
    found = {(v.axiom, v.position, v.task) for v in verdict.violations if v.axiom in COMPARED}
    still_open = {(v.axiom, v.task) for v in verdict.open_obligations}
    if found == theory.broken() and still_open == theory.unanswered():
        return None
    return (
        f"judge {sorted(found - theory.broken())}, formulas {sorted(theory.broken() - found)}; "
        f"open: judge {still_open}, formulas {theory.unanswered()}"
    )


def _written(seed: int) -> Trace:
    return Writer(seed).write(length=6 + seed % 20)


def disagreements(seeds: Iterable[int]) -> list[str]:
    found = ((seed, disagreement(_written(seed))) for seed in seeds)
    return [f"seed {seed}: {text}" for seed, text in found if text]


@pytest.mark.requirement("004 Scope/1", "004 EA6")
@pytest.mark.parametrize("seeds", [range(40), pytest.param(MANY, marks=pytest.mark.slow)], ids=len)
def test_the_judge_agrees_with_the_formulas(seeds: range) -> None:
    assert disagreements(seeds) == []


def test_the_random_traces_are_worth_comparing() -> None:
    verdicts = [judge(records(_written(seed)), "letter", pulses="stated") for seed in range(200)]
    broken = Counter(v.axiom for verdict in verdicts for v in verdict.violations)
    still_open = Counter(v.axiom for verdict in verdicts for v in verdict.open_obligations)
    starts = sum(verdict.starts for verdict in verdicts)
    assert all(broken[axiom] >= 5 for axiom in COMPARED)
    assert all(still_open[axiom] >= 5 for axiom in ("L1", "L2", "L3"))
    assert starts - broken["S1"] > starts / 20


def waiting_and_owed(seed: int) -> Iterator[tuple[set[str | None], set[str | None]]]:
    """Give, for each position, what waits for a start and what is owed one."""
    state, l1 = OperationalState(), L1ObligationFulfillment(None, FrozenTime())
    for position in positions(records(Writer(seed).write(length=25)), pulses="stated"):
        state.step(position)
        l1.judge(position, state)
        started = {event.task for event in position.each("RS")}
        waiting = {finding.task for finding in l1.watch.open()}
        yield waiting - started, {name for name in NAMES if state.obliged(name)} - started


@pytest.mark.requirement("004 Stateful/2")
@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 1000), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_what_waits_for_a_start_is_what_is_owed_one(seeds: range) -> None:
    for seed in seeds:
        for number, (waiting, owed) in enumerate(waiting_and_owed(seed)):
            assert waiting == owed, f"seed {seed}, position {number}"


def test_the_traces_have_something_owed() -> None:
    assert sum(bool(owed) for seed in range(50) for _, owed in waiting_and_owed(seed)) > 100
