"""The list is complete, its tests exist, and the page says what the list says."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import pytest

from ..conftest import CHECKOUT
from . import inventory, specifications
from .page import PAGE, page
from .requirements import AXIOMS, DOCUMENTS, KINDS, Clause, Requirement, load, load_ojs
from .specifications import Demand

LISTED, DECISIONS = load()
REQUIREMENTS = [each.requirement for each in LISTED]
OJS = load_ojs()
CLAUSES = [clause for each in REQUIREMENTS for clause in each.clauses]
CLAUSES += [row.clause for row in OJS]


def test_the_page_is_up_to_date() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(LISTED, DECISIONS, OJS), "run `python -m tests.conformance`"


def test_every_row_of_the_summary_of_002_is_there() -> None:
    musts = [f"CRON-{number:02}" for number in range(1, 31)]
    assert [row.id for row in OJS] == [*musts, *(f"CRON-S0{number}" for number in range(1, 7))]
    text = specifications.text_of("002")
    if text is not None:
        assert set(re.findall(r"^\| (CRON-\w+) ", text, re.MULTILINE)) == {r.id for r in OJS}


@cache
def _functions(file: str) -> set[str]:
    path = CHECKOUT / file
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


def _is_there(node: str) -> bool:
    file, _, function = node.partition("::")
    return function.startswith("test_") and function in _functions(file)


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.text)
def test_every_clause_is_shown_by_tests_that_exist(clause: Clause) -> None:
    assert clause.tests
    assert [node for node in clause.tests if not _is_there(node)] == []
    assert len(set(clause.tests)) == len(clause.tests)


def test_a_test_that_is_not_there_would_be_found() -> None:
    here = "tests/conformance/test_page.py"
    assert _is_there(f"{here}::test_the_page_is_up_to_date")
    assert not _is_there(f"{here}::test_that_nobody_wrote")
    assert not _is_there("tests/missing.py::test_the_page_is_up_to_date")
    assert not _is_there(f"{here}::_is_there")


def test_the_list_is_well_formed() -> None:
    for each in REQUIREMENTS:
        assert set(each.documents) <= set(DOCUMENTS)
        assert set(each.renamed) <= set(each.documents)
        assert each.kind in KINDS
        assert each.clauses
    ids = [name for each in LISTED for name in each.ids]
    assert len(set(ids)) == len(ids)


def test_every_decision_is_there_and_of_use() -> None:
    named = {each.decision for each in REQUIREMENTS} | {clause.decision for clause in CLAUSES}
    assert named - {""} == {decision.key for decision in DECISIONS}


# --- against the texts: what they demand is kept, and looked up where they are ---


def _text(document: str) -> str:
    text = specifications.text_of(document)
    if text is None:
        pytest.skip("the specifications do not lie beside this checkout")
    return text


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_is_kept_of_a_text_is_what_it_demands(document: str) -> None:
    _text(document)
    message = "run `python -m tests.conformance`"
    assert inventory.kept()[document] == inventory.found_in(document), message


def _differences(
    document: str, demands: Iterable[Demand], requirements: Iterable[Requirement]
) -> list[str]:
    """Say where a list and what a text demands part, section by section, in order."""
    found, listed = defaultdict(list), defaultdict(list)
    for demand in demands:
        found[demand.section].append(demand)
    for each in requirements:
        if document in each.documents:
            listed[each.section_in(document)].append(each)
    told = []
    for section in found | listed:
        there, here = found[section], listed[section]
        if [each.kind for each in there] != [each.kind for each in here]:
            told.append(f"{document}, {section}: {len(there)} demands, {len(here)} listed")
            continue
        told += [
            f"{document}, {section}: a list of {demand.items}, {len(each.clauses)} listed"
            for demand, each in zip(there, here, strict=True)
            if demand.items and len(each.clauses) != demand.items
        ]
    return told


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_demand_of_a_text_is_listed_once(document: str) -> None:
    assert _differences(document, inventory.kept()[document], REQUIREMENTS) == []


def test_a_demand_that_is_not_listed_would_be_found() -> None:
    for place, each in enumerate(REQUIREMENTS):
        rest = REQUIREMENTS[:place] + REQUIREMENTS[place + 1 :]
        for document in each.documents:
            assert _differences(document, inventory.kept()[document], rest)


@pytest.mark.parametrize("document", ["000", "001", "003"])
def test_a_clause_that_is_missing_would_be_found(document: str) -> None:
    demands = inventory.kept()[document]
    lists = [place for place, demand in enumerate(demands) if demand.items]
    assert lists
    for place in lists:
        longer = replace(demands[place], items=demands[place].items + 1)
        changed = [*demands[:place], longer, *demands[place + 1 :]]
        assert len(_differences(document, changed, REQUIREMENTS)) == 1


@pytest.mark.parametrize("document", ["000", "001", "003"])
def test_every_error_of_a_text_is_a_clause(document: str) -> None:
    named = set(re.findall(r"^\*\*(\w+Error)\*\*", _text(document), re.MULTILINE))
    listed = {clause.text.partition(":")[0] for clause in CLAUSES}
    assert named
    assert named <= listed


def test_every_axiom_has_a_row() -> None:
    assert sorted(each.kind for each in REQUIREMENTS if each.kind in AXIOMS) == sorted(AXIOMS)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_words_of_the_list_are_ours(document: str) -> None:
    text = " ".join(re.findall(r"[a-z]+", _text(document).casefold()))
    for clause in CLAUSES:
        words = re.findall(r"[a-z]+", clause.text.casefold())
        runs = (" ".join(words[at : at + 6]) for at in range(len(words) - 5))
        assert [run for run in runs if run in text] == [], clause.text


TEXT = """\
# A text

## Normative Language

The words "MUST" and "SHOULD" are words.

## First

It **MUST** be, and it SHOULD NOT be otherwise.

```text
What MUST be in code is no demand.
```

### List

It **MUST**:
- be one
- be two:
   - in two
   - parts
- be what it MUST be by itself

It SHALL be so:

1. once

and that is all that is REQUIRED.
"""


def test_demands_are_found() -> None:
    assert specifications.demands(TEXT) == [
        Demand("First", "MUST", 0),
        Demand("First", "SHOULD NOT", 0),
        Demand("First / List", "MUST", 3),
        Demand("First / List", "MUST", 0),
        Demand("First / List", "SHALL", 1),
        Demand("First / List", "REQUIRED", 0),
    ]


THEORY = """\
# A theory

## Preamble

### Purpose

What must be is told.

## Axioms

**S1 — First**

It must be, and it should not only seem so; it **MUST**.

**A1 - An assumption**
"""


def test_demands_of_a_theory_are_found() -> None:
    assert specifications.demands(THEORY, is_theory=True) == [
        Demand("Axioms", "S1", 0),
        Demand("Axioms", "must", 0),
        Demand("Axioms", "should", 0),
        Demand("Axioms", "MUST", 0),
    ]
