"""Every requirement of the specifications has a test, and every mark names a requirement."""

from __future__ import annotations

from collections import Counter

import pytest

from .conformance import Requirement, load, marked, marks_in

REQUIREMENTS, DECISIONS = load()
TESTS = marked()

# The number of clauses that each document requires, counted in its text: none may get lost.
COUNTS = {"000": 99, "001": 100, "002": 36, "003": 132, "004": 27}
AXIOMS = [
    *(f"004 EA{number}" for number in range(1, 7)),
    *(f"004 S{number}" for number in range(1, 6)),
    *(f"004 L{number}" for number in range(1, 4)),
]


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.id)
def test_every_requirement_has_a_test(requirement: Requirement) -> None:
    assert TESTS.get(requirement.id)


def test_every_mark_names_a_requirement() -> None:
    assert set(TESTS) - {each.id for each in REQUIREMENTS} == set()


def test_no_requirement_is_lost() -> None:
    counts = Counter(document for each in REQUIREMENTS for document in each.documents.split())
    assert counts == COUNTS
    assert [each.id for each in REQUIREMENTS if each.level == "axiom"] == AXIOMS


def test_every_decision_is_used() -> None:
    assert {each.decision for each in REQUIREMENTS} - {""} == set(DECISIONS)


def test_marks_are_found() -> None:
    source = """
@pytest.mark.slow
@pytest.mark.requirement("001 A/1", "002 CRON-01")
def test_it() -> None: ...

@pytest.mark.slow
async def test_else() -> None: ...
"""
    assert list(marks_in(source)) == [("test_it", "001 A/1"), ("test_it", "002 CRON-01")]
