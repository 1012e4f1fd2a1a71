"""By the letter the judge says what the formulas say, on any trace whatever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from django_declarative_cron.theory import judge

from ..effort import IS_COMPLETE
from .formulas import Theory, Trace
from .random_traces import Writer, records

COMPARED = {"S1", "S2", "S3", "S4", "EA6"}


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
    told = []
    for seed in seeds:
        found = disagreement(_written(seed))
        if found:
            told.append(f"seed {seed}: {found}")
    return told


@pytest.mark.requirement("004 Scope/1", "004 EA6")
def test_the_judge_agrees_with_the_formulas() -> None:
    assert disagreements(range(40)) == []


def test_the_random_traces_are_worth_comparing() -> None:
    verdicts = [judge(records(_written(seed)), "letter", pulses="stated") for seed in range(200)]
    broken = Counter(v.axiom for verdict in verdicts for v in verdict.violations)
    still_open = Counter(v.axiom for verdict in verdicts for v in verdict.open_obligations)
    starts = sum(verdict.starts for verdict in verdicts)
    assert all(broken[axiom] >= 5 for axiom in COMPARED)
    assert all(still_open[axiom] >= 5 for axiom in ("L1", "L2", "L3"))
    assert starts - broken["S1"] > starts / 20


@pytest.mark.slow
def test_the_judge_agrees_with_the_formulas_on_many_traces() -> None:
    assert disagreements(range(40, 5_000 if IS_COMPLETE else 1_000)) == []
